//! Two layouts and the requests between them, as the command line names them.

use mooncake_pd_layout::import::Side;
use mooncake_pd_plan::{BoundsGrade, Contract, Options, RawRequest};

use crate::args::{Blocks, PairArgs};
use crate::failure::Failure;
use crate::input::Input;
use crate::loaded::Loaded;
use crate::request::{RequestName, parse};

/// Two layouts and the requests between them.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The prefill side.
    pub source: Loaded,
    /// The decode side.
    pub destination: Loaded,
    /// One batch.
    pub requests: Vec<RawRequest>,
    /// Which bytes may be written besides payload.
    pub contract: Contract,
}

impl Pair {
    /// Reads the files. Layouts are re-sized to `--blocks`, or to the block
    /// counts that a bench names.
    ///
    /// # Errors
    /// A file can't be read or is not what it should be.
    pub fn read(
        source: &str,
        destination: &str,
        request: &RequestName,
        args: &PairArgs,
    ) -> Result<Self, Failure> {
        if request.file == "-" && (source == "-" || destination == "-") {
            return Err(Failure::TwoInputs);
        }
        let mut input = Input::default();
        let texts = (input.text(source)?, input.text(destination)?);
        let request_text = input.text(&request.file)?;
        Self::of(
            (source, texts.0),
            (destination, texts.1),
            (request, &request_text),
            args,
        )
    }

    /// The same of texts that were read, each with its file's name.
    ///
    /// # Errors
    /// A text is not what it should be.
    pub fn of(
        (source_name, source): (&str, String),
        (destination_name, destination): (&str, String),
        (request_name, request): (&RequestName, &str),
        args: &PairArgs,
    ) -> Result<Self, Failure> {
        let mut source = Loaded::new(source_name, source, Side::Prefill)?;
        let mut destination = Loaded::new(destination_name, destination, Side::Decode)?;
        let requests = parse(request_name, request)?;
        let named = requests
            .blocks
            .and_then(|(prefill, decode)| Blocks::new(prefill, decode));
        if let Some(blocks) = args.blocks.or(named) {
            source = source.resized(blocks.prefill)?;
            destination = destination.resized(blocks.decode)?;
        }
        Ok(Self {
            source,
            destination,
            requests: requests.requests,
            contract: args.contract.0,
        })
    }

    /// How the requests are planned.
    #[must_use]
    pub fn options(&self) -> Options<'static> {
        Options {
            contract: self.contract,
            // Both layouts are given with the lengths of their allocations.
            bounds: BoundsGrade::Proved,
            ..Options::default()
        }
    }
}
