//! Generated values as quickcheck wants them.

use arbitrary::Unstructured;
use quickcheck::{Arbitrary, Gen};
use std::boxed::Box;
use std::vec::Vec;

use super::{hostile, layout, pair};
use crate::layout::CacheLayout;
use crate::raw::RawLayout;

/// Bytes that a generated layout consumes at most, about.
const BYTES: usize = 512;

fn draw(g: &mut Gen) -> Vec<u8> {
    let len = usize::from(u16::arbitrary(g)) % BYTES;
    (0..len).map(|_| u8::arbitrary(g)).collect()
}

fn shrink<T: 'static>(bytes: &Vec<u8>, make: fn(Vec<u8>) -> T) -> Box<dyn Iterator<Item = T>> {
    Box::new(bytes.shrink().map(make))
}

fn valid(raw: &RawLayout) -> CacheLayout {
    match CacheLayout::new(raw) {
        Ok(layout) => layout,
        Err(error) => panic!("generated layout is not valid: {error}\n{raw:?}"),
    }
}

/// A valid layout of [`layout`](super::layout).
#[derive(Clone, Debug)]
pub struct AnyLayout {
    bytes: Vec<u8>,
    /// The layout.
    pub layout: CacheLayout,
}

impl AnyLayout {
    /// The layout that these bytes make.
    ///
    /// # Panics
    /// The generator is wrong.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let raw = layout(&mut Unstructured::new(&bytes)).expect("bytes never run out");
        let layout = valid(&raw);
        Self { bytes, layout }
    }
}

impl Arbitrary for AnyLayout {
    fn arbitrary(g: &mut Gen) -> Self {
        Self::new(draw(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        shrink(&self.bytes, Self::new)
    }
}

/// A compatible source and destination of [`pair`](super::pair).
#[derive(Clone, Debug)]
pub struct AnyPair {
    bytes: Vec<u8>,
    /// The side that sends.
    pub source: CacheLayout,
    /// The side that receives.
    pub destination: CacheLayout,
}

impl AnyPair {
    /// The pair that these bytes make.
    ///
    /// # Panics
    /// The generator is wrong.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let (source, destination) =
            pair(&mut Unstructured::new(&bytes)).expect("bytes never run out");
        Self {
            source: valid(&source),
            destination: valid(&destination),
            bytes,
        }
    }
}

impl Arbitrary for AnyPair {
    fn arbitrary(g: &mut Gen) -> Self {
        Self::new(draw(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        shrink(&self.bytes, Self::new)
    }
}

/// A manifest of [`hostile`](super::hostile).
#[derive(Clone, Debug)]
pub struct AnyManifest {
    bytes: Vec<u8>,
    /// The manifest.
    pub raw: RawLayout,
}

impl AnyManifest {
    /// The manifest that these bytes make.
    ///
    /// # Panics
    /// The generator is wrong.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let raw = hostile(&mut Unstructured::new(&bytes)).expect("bytes never run out");
        Self { bytes, raw }
    }
}

impl Arbitrary for AnyManifest {
    fn arbitrary(g: &mut Gen) -> Self {
        Self::new(draw(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        shrink(&self.bytes, Self::new)
    }
}
