//! Failures keep the errors that they come from, and have exit codes.

use std::error::Error;

use mooncake_pd::EngineFailure;
use mooncake_pd::failure::{Exit, Failure};
use mooncake_pd::verify::WalkError;
use mooncake_pd_plan::{CheckError, RequestError};
use mooncake_pd_rdma::OpenError;

#[test]
fn an_engines_failure_keeps_its_error_and_is_no_failed_verification() {
    let unreachable = OpenError::Unreachable {
        name: "decode".to_owned(),
    };
    let failure = Failure::from(EngineFailure::from(unreachable.clone()));
    assert_eq!(failure.exit(), Exit::Internal);
    assert_eq!(failure.exit().code(), 5);
    let source = failure.source().unwrap();
    assert_eq!(source.downcast_ref(), Some(&unreachable));
    let message = "the engine did not open its peer: no peer `decode` answers";
    assert_eq!(failure.message(), message);
    let output = failure.output(true);
    assert_eq!(output.notes, [format!("error: {message}")]);
    assert_eq!(
        output.text,
        format!(
            "{{\"format\":\"mooncake-pd-error/1\",\"kind\":\"internal\",\"error\":\"{message}\",\"exit\":5}}\n"
        )
    );
}

#[test]
fn a_planners_fault_is_internal_and_a_demand_against_it_is_a_failed_verification() {
    let check = CheckError::Request {
        request: 0,
        error: RequestError::Foreign,
    };
    assert_eq!(Failure::from(check).exit(), Exit::Internal);
    let refuted = WalkError::Twice {
        allocation: 0,
        offset: 7,
    };
    assert_eq!(Failure::Demand(refuted).exit(), Exit::Unverified);
}
