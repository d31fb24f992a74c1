//! Oracles for tests and benchmarks, compiled under the feature `testing` only.
//!
//! What is here says what others do. It shares no code with planning, and nothing here is a plan.

pub mod vllm;
