//! A gated delta net's page in vLLM 0.33: raw bytes, explained by its spec.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::error::{ImportError, agree};
use super::gdn::{self, State};
use super::place::ReportPlace;
use super::vllm_033::View;
use super::vllm_033_report::{Config, Spec};
use crate::raw::RawField;

impl View<'_> {
    /// Convolution state and, right behind it, recurrent state.
    pub(super) fn state(&self, spec: &Spec, config: &Config) -> Result<[RawField; 2], ImportError> {
        let state = spec.mamba_type.as_deref().unwrap_or_default();
        if !state.ends_with("GDN_ATTN") {
            return Err(ImportError::UnknownState {
                place: self.place.into(),
                state: state.into(),
            });
        }
        let ([conv, recurrent], [conv_dtype, recurrent_dtype]) =
            (spec.shapes.as_slice(), spec.dtypes.as_slice())
        else {
            return Err(ImportError::missing(self.place, "pair of states"));
        };
        let state = State {
            conv,
            recurrent,
            key_dim: config.linear_key_head_dim,
            value_dim: config.linear_value_head_dim,
        };
        let [_, _, content] = self.dims;
        let parts = channels(self.place, config)?;
        let conv = state.conv(self.place, parts)?;
        let recurrent = state.recurrent(self.place)?;
        let all = conv
            .split
            .parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part));
        agree(
            self.place,
            "channels",
            &parts,
            &state.channels(self.place, all)?,
        )?;
        let (conv_dims, conv_len) = gdn::packed(self.place, &conv.axes, conv_dtype)?;
        let (recurrent_dims, recurrent_len) =
            gdn::packed(self.place, &recurrent.axes, recurrent_dtype)?;
        let stated = Vec::from([conv_len, recurrent_len]);
        agree(self.place, "bytes of states", &spec.state_nbytes, &stated)?;
        let end = conv_len.checked_add(recurrent_len);
        agree(self.place, "bytes of the view", &Some(content.extent), &end)?;
        let behind = self
            .layer
            .storage_offset_bytes
            .checked_add(conv_len)
            .ok_or_else(|| ImportError::too_large(self.place, "offset"))?;
        let field = |name: &str, dtype: &str, offset, dims, split| RawField {
            name: name.to_string(),
            dtype: dtype.to_string(),
            allocation: self.layer.storage,
            offset,
            page_stride: self.page_stride,
            dims,
            split: Some(split),
        };
        Ok([
            field(
                "conv",
                conv_dtype,
                self.layer.storage_offset_bytes,
                conv_dims,
                conv.split,
            ),
            field(
                "recurrent",
                recurrent_dtype,
                behind,
                recurrent_dims,
                recurrent.split,
            ),
        ])
    }
}

/// This rank's convolution channels of q, k and v.
fn channels(place: &ReportPlace, config: &Config) -> Result<[u64; 3], ImportError> {
    let part = |what, heads: Option<u64>, dim: Option<u64>| {
        let (Some(heads), Some(dim)) = (heads, dim) else {
            return Err(ImportError::missing(ReportPlace::Config, what));
        };
        let tp = u64::from(config.tp_size);
        if heads.checked_rem(tp) != Some(0) {
            return Err(ImportError::Mismatch {
                place: place.into(),
                what,
                found: heads.to_string(),
                expected: format!("a multiple of {tp} ranks"),
            });
        }
        heads
            .checked_div(tp)
            .and_then(|heads| heads.checked_mul(dim))
            .ok_or_else(|| ImportError::too_large(place, what))
    };
    let key = part(
        "key heads of linear attention",
        config.linear_num_key_heads,
        config.linear_key_head_dim,
    )?;
    let value = part(
        "value heads of linear attention",
        config.linear_num_value_heads,
        config.linear_value_head_dim,
    )?;
    Ok([key, key, value])
}
