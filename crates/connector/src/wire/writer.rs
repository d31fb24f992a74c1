//! msgpack as stock peers write it: every value in its shortest form.

use alloc::vec::Vec;

use rmp::encode::{ByteBuf, write_array_len, write_map_len, write_sint, write_str, write_uint};

use super::error::EncodeError;

/// A message that is being written; writing to memory itself doesn't fail.
#[derive(Default)]
pub(super) struct Writer {
    to: ByteBuf,
}

impl Writer {
    pub(super) fn map(&mut self, what: &'static str, len: usize) -> Result<(), EncodeError> {
        let len = count(what, len)?;
        let Ok(_) = write_map_len(&mut self.to, len);
        Ok(())
    }

    pub(super) fn array(&mut self, what: &'static str, len: usize) -> Result<(), EncodeError> {
        let len = count(what, len)?;
        let Ok(_) = write_array_len(&mut self.to, len);
        Ok(())
    }

    pub(super) fn text(&mut self, what: &'static str, text: &str) -> Result<(), EncodeError> {
        count(what, text.len())?;
        let Ok(()) = write_str(&mut self.to, text);
        Ok(())
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) {
        let Ok(_) = write_uint(&mut self.to, number.into());
    }

    /// -1, which stands for none.
    pub(super) fn none(&mut self) {
        let Ok(_) = write_sint(&mut self.to, -1);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.to.into_vec()
    }
}

fn count(what: &'static str, len: usize) -> Result<u32, EncodeError> {
    u32::try_from(len).map_err(|_| EncodeError::TooLong { what, len })
}
