//! The `mooncake-pd` command.

use clap::Command;

fn main() {
    Command::new("mooncake-pd")
        .version(env!("CARGO_PKG_VERSION"))
        .get_matches();
}
