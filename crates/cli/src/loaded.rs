//! A layout with the text that it was read from.

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_layout::import::{self, Side};

use crate::failure::Failure;
use crate::verify;

/// A checked layout, and the text that the walker reads.
#[derive(Clone, Debug)]
pub struct Loaded {
    name: String,
    text: String,
    side: Side,
    layout: CacheLayout,
}

impl Loaded {
    /// Imports a layout of any known format.
    ///
    /// # Errors
    /// The text is no valid layout.
    pub fn new(name: &str, text: String, side: Side) -> Result<Self, Failure> {
        let layout = import::any(&text, side).map_err(|error| Failure::Layout {
            file: name.to_owned(),
            error: Box::new(error),
        })?;
        Ok(Self {
            name: name.to_owned(),
            text,
            side,
            layout,
        })
    }

    /// The layout with another number of blocks. Captured files hold one size
    /// only, so the walker reads the manifest of the result.
    ///
    /// # Errors
    /// It has several pools, or can't have that many blocks.
    pub fn resized(self, blocks: u32) -> Result<Self, Failure> {
        let [pool] = self.layout.pools() else {
            return Err(Failure::SeveralPools {
                file: self.name,
                pools: self.layout.pools().len(),
            });
        };
        if pool.capacity() == blocks {
            return Ok(self);
        }
        let layout = self
            .layout
            .resized(pool.id(), blocks)
            .map_err(|error| Failure::Resize {
                file: self.name.clone(),
                error,
            })?;
        let text = layout.to_json().map_err(|error| Failure::Encode {
            file: self.name.clone(),
            error,
        })?;
        Ok(Self {
            text,
            layout,
            ..self
        })
    }

    /// The file's name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The checked layout.
    #[must_use]
    pub const fn layout(&self) -> &CacheLayout {
        &self.layout
    }

    /// The raw views, as the walker reads them from the text.
    ///
    /// # Errors
    /// The walker can't read the text.
    pub fn raw(&self) -> Result<verify::Layout, Failure> {
        let side = match self.side {
            Side::Prefill => verify::Side::Prefill,
            Side::Decode => verify::Side::Decode,
        };
        verify::Layout::read(&self.text, side).map_err(|error| Failure::Walk {
            file: self.name.clone(),
            error,
        })
    }
}
