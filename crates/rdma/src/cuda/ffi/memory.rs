//! Memory of devices.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use mooncake_pd_layout::ByteLen;

use super::{Context, Failure};
use crate::access::AccessError;
use crate::address::Address;
use crate::cuda::device::Device;
use crate::cuda::error::CudaError;
use crate::location::Location;
use crate::native::{Backing, NativeMemory};

/// Bytes of a device, and what gives them back when it is dropped.
#[derive(Debug)]
struct Block {
    context: Arc<Context>,
    base: Address,
    len: ByteLen,
    owner: Owner,
}

/// Who gives memory back.
enum Owner {
    Us,
    /// Whoever it belongs to, when this is dropped.
    Other(#[expect(dead_code, reason = "it is there to be dropped")] Box<dyn Any + Send + Sync>),
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Us => "us",
            Self::Other(_) => "other",
        })
    }
}

/// A block of `cuMemAlloc` with zero bytes.
pub(in crate::cuda) fn allocate(device: &Device, len: ByteLen) -> Result<NativeMemory, CudaError> {
    let context = device.context();
    let out_of_memory = |failure| device.out_of_memory(len, failure);
    let entered = context.enter()?;
    let library = entered.library();
    let count = usize::try_from(len.get()).map_err(|_| CudaError::answer("cuMemAlloc_v2", 0))?;
    let mut raw = 0;
    // SAFETY: `raw` takes an address, and a context is current.
    unsafe { library.cuMemAlloc_v2(&raw mut raw, count) }.map_err(out_of_memory)?;
    let base = Address::new(raw).map_err(|_| CudaError::answer("cuMemAlloc_v2", raw));
    let base = match base {
        Ok(base) if base.end(len).is_ok() => base,
        _ => {
            // SAFETY: allocated above, and nobody has it.
            let _ = unsafe { library.cuMemFree_v2(raw) };
            return Err(CudaError::answer("cuMemAlloc_v2", raw));
        }
    };
    let block = Block {
        context: Arc::clone(context),
        base,
        len,
        owner: Owner::Us,
    };
    // SAFETY: the block has that many bytes, and nobody else has it.
    unsafe { library.cuMemsetD8_v2(raw, 0, count) }?;
    entered.synchronize_default_stream()?;
    native(device.location(), block)
}

fn native(location: Location, block: Block) -> Result<NativeMemory, CudaError> {
    let (base, len) = (block.base, block.len);
    // SAFETY: the bytes are there until the block is dropped, since it frees
    // them or keeps their owner; the host never refers to memory of a device.
    let memory = unsafe { NativeMemory::from_backing(base, len, location, Box::new(block)) };
    memory.map_err(|_| CudaError::answer("cuMemAlloc_v2", base.get()))
}

impl Device {
    /// Memory of this device that somebody else has, such as an inference
    /// engine's cache. Keeps `keep`, its owner, until the last clone,
    /// registration and transfer of it is gone.
    ///
    /// # Errors
    /// The driver says that not all of it is one allocation of this device.
    ///
    /// # Safety
    /// The `len` bytes at `base` must stay allocated until `keep` is dropped.
    /// Kernels must not read bytes while a transfer writes them, nor write
    /// bytes while a transfer reads them.
    pub unsafe fn adopt(
        &self,
        base: Address,
        len: ByteLen,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Result<NativeMemory, CudaError> {
        self.check_range(base, len)?;
        let block = Block {
            context: Arc::clone(self.context()),
            base,
            len,
            owner: Owner::Other(keep),
        };
        native(self.location(), block)
    }
}

impl Block {
    /// The address of byte `at`, if `count` bytes from there lie inside, and
    /// what to say where they don't or the device fails.
    fn at(
        &self,
        at: u64,
        count: usize,
    ) -> Result<(u64, impl Fn(Failure) -> AccessError), AccessError> {
        let len = self.len.get();
        let end = u64::try_from(count).ok().and_then(|n| at.checked_add(n));
        let address = self.base.get().checked_add(at);
        match (end, address) {
            (Some(end), Some(address)) if end <= len => {
                Ok((address, move |failure: Failure| AccessError::Device {
                    start: at,
                    end,
                    code: failure.code(),
                }))
            }
            _ => Err(AccessError::Outside {
                start: at,
                end: end.unwrap_or(u64::MAX),
                len,
                base: self.base,
            }),
        }
    }
}

impl Backing for Block {
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError> {
        let (to, failed) = self.at(at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let entered = self.context.enter().map_err(&failed)?;
        let library = entered.library();
        // SAFETY: the bytes lie inside the block, which is there for as long as
        // `self`.
        unsafe { library.cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len()) }
            .map_err(&failed)?;
        // The driver may return when it has taken the bytes, before they are there.
        entered.synchronize_default_stream().map_err(failed)
    }

    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError> {
        let (from, failed) = self.at(at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let entered = self.context.enter().map_err(&failed)?;
        let library = entered.library();
        // SAFETY: as in `copy_in`.
        unsafe { library.cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, bytes.len()) }
            .map_err(failed)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let (Owner::Us, Ok(entered)) = (&self.owner, self.context.enter()) {
            // At the process's end the driver may be gone; nobody is to be told.
            // SAFETY: allocated by `allocate`, and nobody has it any more.
            let _ = unsafe { entered.library().cuMemFree_v2(self.base.get()) };
        }
    }
}
