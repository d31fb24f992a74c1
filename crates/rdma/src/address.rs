//! Where bytes lie in one process.

use std::fmt;

use mooncake_pd_layout::{ByteLen, Offset};

/// One past the largest address: 2^63.
const ADDRESS_LIMIT: u64 = 1 << 63;

/// Why a number is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes from address {base:#x} is outside 0..2^63")]
pub struct AddressError {
    /// Where it would count from.
    pub base: u64,
    /// How far.
    pub bytes: u64,
}

/// Bytes from the start of a process's address space, 0..2^63.
///
/// Means something only in the process that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u64);

impl Address {
    /// Checks and wraps an address.
    ///
    /// # Errors
    /// 2^63 and more.
    pub fn new(address: u64) -> Result<Self, AddressError> {
        if address < ADDRESS_LIMIT {
            Ok(Self(address))
        } else {
            Err(AddressError {
                base: address,
                bytes: 0,
            })
        }
    }

    /// The address as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The address `offset` bytes further on.
    ///
    /// # Errors
    /// It would be 2^63 or more.
    pub fn offset(self, offset: Offset) -> Result<Self, AddressError> {
        self.add(offset.get())
    }

    /// The address `len` bytes further on: one past the end of such a range.
    ///
    /// # Errors
    /// It would be 2^63 or more.
    pub fn end(self, len: ByteLen) -> Result<Self, AddressError> {
        self.add(len.get())
    }

    fn add(self, bytes: u64) -> Result<Self, AddressError> {
        self.0
            .checked_add(bytes)
            .filter(|sum| *sum < ADDRESS_LIMIT)
            .map(Self)
            .ok_or(AddressError {
                base: self.0,
                bytes,
            })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c28_addresses_near_2_to_the_47_take_offsets_over_2_to_the_32() {
        let base = Address::new((1 << 47) - 4096).unwrap();
        let offset = Offset::new((1 << 33) + 7).unwrap();
        let expected = (1_u64 << 47) - 4096 + (1 << 33) + 7;
        assert_eq!(base.offset(offset).unwrap().get(), expected);
    }

    #[test]
    fn an_address_never_reaches_2_to_the_63() {
        let last = Address::new(ADDRESS_LIMIT - 2).unwrap();
        assert!(last.end(ByteLen::new(1).unwrap()).is_ok());
        assert_eq!(
            last.end(ByteLen::new(2).unwrap()),
            Err(AddressError {
                base: ADDRESS_LIMIT - 2,
                bytes: 2
            })
        );
        assert!(Address::new(ADDRESS_LIMIT).is_err());
    }
}
