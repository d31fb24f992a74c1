//! Running the command with an engine between two processes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// An engine whose library is here, as `--engine` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Loopback,
    Mooncake,
    Tokenspeed,
}

impl Engine {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Mooncake => "mooncake",
            Self::Tokenspeed => "tokenspeed",
        }
    }

    /// The engines that can be had here. No registry has Mooncake's C library;
    /// the test command provides tokenspeed's.
    pub(crate) fn here() -> Vec<Self> {
        let named = |variable| env::var_os(variable).is_some();
        let strict = env::var("MOONCAKE_PD_REQUIRE_ENGINES").is_ok_and(|value| value == "1");
        let tokenspeed = named("TOKENSPEED_TRANSFER_ENGINE_LIB");
        assert!(tokenspeed || !strict, "tokenspeed's library is required");
        let mut here = vec![Self::Loopback];
        if tokenspeed {
            here.push(Self::Tokenspeed);
        }
        if named("MOONCAKE_TRANSFER_ENGINE_LIB") {
            here.push(Self::Mooncake);
        }
        eprintln!("engines: {here:?}");
        here
    }
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// What every transfer says that all is well; their descriptors.
    pub(crate) fn verified(&self, engine: &str) -> Vec<u64> {
        let json = self.json();
        assert_eq!((self.code, &json["verdict"]), (0, &"ok".into()), "{json}");
        let transfers = json["transfers"].as_array().unwrap();
        transfers
            .iter()
            .map(|transfer| {
                assert_eq!(transfer["engine"], engine);
                assert_eq!(transfer["memory"], "host");
                assert_eq!(transfer["wrong_bytes"], 0);
                assert!(transfer["verified_bytes"].as_u64().unwrap() > 0);
                assert!(transfer["ns_per_descriptor"].as_f64().unwrap() > 0.0);
                transfer["descriptors"].as_u64().unwrap()
            })
            .collect()
    }
}

/// `mooncake-pd transfer --engine …`, over TCP on every machine.
pub(crate) fn transfer(engine: Engine) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"));
    command.args(["transfer", "--json", "--engine", engine.name()]);
    command.env("MC_FORCE_TCP", "1");
    // A connection for each descriptor overflows the peer's queue of connections.
    command.env("MC_TCP_ENABLE_CONNECTION_POOL", "1");
    command
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!err.contains("panicked"), "{err}");
    Ended {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err,
    }
}

pub(crate) fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
