//! msgpack, read as strictly as stock peers read it.

use core::str;

use rmp::Marker;
use rmp::decode::{
    Bytes, NumValueReadError, ValueReadError, read_array_len, read_int, read_map_len, read_str_len,
};

use super::error::{DecodeError, Place};

/// A position in a message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    bytes: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8], limit: usize) -> Result<Self, DecodeError> {
        let bytes = message.len();
        if bytes > limit {
            return Err(DecodeError::TooLong { bytes, limit });
        }
        let rest = message;
        Ok(Self { rest, bytes })
    }

    /// Entries of a map, each of at least two bytes.
    pub(super) fn map(&mut self, at: Place) -> Result<usize, DecodeError> {
        let count = self.take(at, "a map", read_map_len)?;
        self.announced(at, count, 2)
    }

    /// Entries of a list, each of at least one byte.
    pub(super) fn array(&mut self, at: Place) -> Result<usize, DecodeError> {
        let count = self.take(at, "a list", read_array_len)?;
        self.announced(at, count, 1)
    }

    /// Entries of a list that may have up to `limit`.
    pub(super) fn bounded(&mut self, at: Place, limit: usize) -> Result<usize, DecodeError> {
        match self.array(at)? {
            count if count > limit => Err(DecodeError::TooMany { at, count, limit }),
            count => Ok(count),
        }
    }

    pub(super) fn text(&mut self, at: Place) -> Result<&'a str, DecodeError> {
        str::from_utf8(self.raw_text(at)?).map_err(|_| DecodeError::Utf8 { at })
    }

    /// A key, of which stock peers don't ask that it is UTF-8.
    pub(super) fn key(&mut self) -> Result<&'a [u8], DecodeError> {
        self.raw_text(Place::key("a key"))
    }

    fn raw_text(&mut self, at: Place) -> Result<&'a [u8], DecodeError> {
        let len = self.take(at, "a text", read_str_len)?;
        let len = self.announced(at, len, 1)?;
        self.skip_bytes(at, len)
    }

    pub(super) fn int(&mut self, at: Place) -> Result<i128, DecodeError> {
        let mut from = Bytes::new(self.rest);
        let number = read_int(&mut from).map_err(|error| match error {
            NumValueReadError::TypeMismatch(marker) => wrong(at, "an integer", marker),
            _ => self.truncated(at),
        })?;
        self.rest = from.remaining_slice();
        Ok(number)
    }

    /// An integer of a narrower type, which counts from `low`.
    pub(super) fn number<T>(&mut self, at: Place, (low, high): (u64, u64)) -> Result<T, DecodeError>
    where
        T: TryFrom<u64>,
    {
        let found = self.int(at)?;
        u64::try_from(found)
            .ok()
            .filter(|number| (low..=high).contains(number))
            .and_then(|number| T::try_from(number).ok())
            .ok_or(DecodeError::Range {
                at,
                found,
                low,
                high,
            })
    }

    /// Whether nil is next; it is then taken.
    pub(super) fn nil(&mut self) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if Marker::from_u8(first) == Marker::Null => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Goes past one value of any type and depth, in constant memory.
    pub(super) fn skip(&mut self, at: Place) -> Result<(), DecodeError> {
        let mut values = 1_u64;
        while let Some(left) = values.checked_sub(1) {
            let first = self.rest.first().copied();
            let marker = Marker::from_u8(first.ok_or_else(|| self.truncated(at))?);
            let inside = match marker {
                Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => self.map(at)?.checked_mul(2),
                Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => Some(self.array(at)?),
                Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                    self.raw_text(at)?;
                    Some(0)
                }
                Marker::Reserved => return Err(wrong(at, "a value", marker)),
                _ => {
                    self.skip_plain(at, marker)?;
                    Some(0)
                }
            };
            values = inside
                .and_then(|inside| left.checked_add(u64::try_from(inside).ok()?))
                .ok_or_else(|| self.truncated(at))?;
        }
        Ok(())
    }

    /// A value that holds no others and is no text.
    fn skip_plain(&mut self, at: Place, marker: Marker) -> Result<(), DecodeError> {
        self.skip_bytes(at, 1)?;
        let len = match marker {
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 | Marker::FixExt1 => 2,
            Marker::FixExt2 => 3,
            Marker::U32 | Marker::I32 | Marker::F32 => 4,
            Marker::FixExt4 => 5,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::FixExt8 => 9,
            Marker::FixExt16 => 17,
            Marker::Bin8 => self.length(at, 1)?,
            Marker::Bin16 => self.length(at, 2)?,
            Marker::Bin32 => self.length(at, 4)?,
            // One byte more says the type.
            Marker::Ext8 => self.length(at, 1)?.saturating_add(1),
            Marker::Ext16 => self.length(at, 2)?.saturating_add(1),
            Marker::Ext32 => self.length(at, 4)?.saturating_add(1),
            _ => 0,
        };
        self.skip_bytes(at, len).map(drop)
    }

    /// A length of so many bytes, the largest first.
    fn length(&mut self, at: Place, bytes: usize) -> Result<usize, DecodeError> {
        let digits = self.skip_bytes(at, bytes)?;
        let join = |high: usize, low: &u8| high.checked_mul(256)?.checked_add(usize::from(*low));
        digits
            .iter()
            .try_fold(0, join)
            .ok_or_else(|| self.truncated(at))
    }

    /// That the message is over.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing {
                bytes: self.bytes.saturating_sub(left),
                left,
            }),
        }
    }

    fn take<'b, T>(
        &'b mut self,
        at: Place,
        expected: &'static str,
        read: impl Fn(&mut Bytes<'a>) -> Result<T, ValueReadError<rmp::decode::bytes::BytesReadError>>,
    ) -> Result<T, DecodeError> {
        let mut from = Bytes::new(self.rest);
        let value = read(&mut from).map_err(|error| match error {
            ValueReadError::TypeMismatch(marker) => wrong(at, expected, marker),
            _ => self.truncated(at),
        })?;
        self.rest = from.remaining_slice();
        Ok(value)
    }

    /// A count, refused if the rest can't hold so many entries of `least` bytes.
    fn announced(&self, at: Place, count: u32, least: usize) -> Result<usize, DecodeError> {
        let left = self.rest.len();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match count.checked_mul(least) {
            Some(bytes) if bytes <= left => Ok(count),
            _ => Err(DecodeError::Count { at, count, left }),
        }
    }

    fn skip_bytes(&mut self, at: Place, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.truncated(at))?;
        self.rest = rest;
        Ok(taken)
    }

    fn truncated(&self, at: Place) -> DecodeError {
        DecodeError::Truncated {
            at,
            bytes: self.bytes,
        }
    }
}

fn wrong(at: Place, expected: &'static str, marker: Marker) -> DecodeError {
    let found = match marker {
        Marker::Null => "nil",
        Marker::True | Marker::False => "a bool",
        Marker::F32 | Marker::F64 => "a float",
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => "a text",
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => "bytes",
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => "a list",
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => "a map",
        Marker::FixPos(_)
        | Marker::FixNeg(_)
        | Marker::U8
        | Marker::U16
        | Marker::U32
        | Marker::U64
        | Marker::I8
        | Marker::I16
        | Marker::I32
        | Marker::I64 => "an integer",
        Marker::Reserved => "the byte 0xc1",
        _ => "an extension",
    };
    DecodeError::Type {
        at,
        expected,
        found,
    }
}
