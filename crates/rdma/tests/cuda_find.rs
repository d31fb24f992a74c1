//! What is said where there is no usable driver.
#![cfg(test)]
#![cfg(all(feature = "cuda", target_os = "linux"))]
#![allow(unsafe_code, reason = "functions of the stand-in")]

#[path = "common/fake.rs"]
mod fake;

use fake::{Fake, Found, with};
use mooncake_pd_rdma::cuda::{CudaError, Driver};
use mooncake_pd_rdma::{EngineCode, Fault};

fn code(value: i64) -> EngineCode {
    EngineCode::new("cuda", value)
}

#[test]
fn files_that_are_no_libraries_are_told_with_what_the_loader_says() {
    with(Found::Broken, || {
        let error = Driver::find().unwrap_err();
        let CudaError::NoLibrary { tried } = &error else {
            panic!("{error:?}")
        };
        assert!(
            tried.iter().any(|text| text.contains("libcuda.so:")),
            "{tried:?}"
        );
        assert!(
            tried.iter().any(|text| text.contains("libcuda.so.1:")),
            "{tried:?}"
        );
        assert_eq!(error.fault(), Fault::Engine);
        assert!(error.to_string().contains("install the driver"), "{error}");
    });
}

#[test]
fn an_empty_library_is_refused_with_every_missing_function() {
    with(Found::Empty, || {
        let error = Driver::find().unwrap_err();
        let CudaError::MissingSymbols { library, symbols } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(library, "libcuda.so.1");
        assert!(symbols.len() > 20, "{symbols:?}");
        for symbol in symbols {
            assert!(error.to_string().contains(symbol), "{error}");
        }
        // Asked again, it says the same.
        assert_eq!(Driver::find().unwrap_err(), error);
    });
}

#[test]
fn an_old_library_is_refused_with_the_one_function_that_it_lacks() {
    with(Found::Old, || {
        let symbols = vec!["cuFlushGPUDirectRDMAWrites"];
        let library = "libcuda.so.1".to_owned();
        assert_eq!(
            Driver::find().unwrap_err(),
            CudaError::MissingSymbols { library, symbols }
        );
    });
}

#[test]
fn a_driver_that_does_not_start_or_has_no_device_is_an_error_with_its_code() {
    with(Found::Whole, || {
        let fake = Fake::get();
        for (value, hint) in [
            (34, "stubs"),
            (803, "reboot"),
            (999, "nvidia-smi"),
            (3, "spawn"),
            // Newer than any bindings.
            (987_654, "cuda 987654"),
        ] {
            fake.fail("cuInit", value);
            let error = Driver::find().unwrap_err();
            assert_eq!(error.code(), Some(code(value.into())));
            let CudaError::Failed {
                call: "cuInit",
                name,
                ..
            } = &error
            else {
                panic!("{error:?}")
            };
            let known = if value == 34 {
                "CUDA_ERROR_STUB_LIBRARY"
            } else {
                "an error without a name"
            };
            assert_eq!(name, known);
            assert!(error.to_string().contains(hint), "{error}");
        }
        fake.fail("cuInit", 100);
        let none = CudaError::NoDevice { code: code(100) };
        assert_eq!(Driver::find().unwrap_err(), none);
        fake.mend();
        fake.set("fake_devices", 0);
        assert_eq!(Driver::find().unwrap_err(), none);
        fake.set("fake_devices", 2);
        assert_eq!(Driver::find().unwrap().devices(), 2);
    });
}

#[test]
fn a_driver_under_another_name_is_found_behind_a_stand_in() {
    with(Found::Behind, || {
        assert_eq!(Driver::find().unwrap().devices(), 2);
    });
}
