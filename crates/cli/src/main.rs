//! The `mooncake-pd` command.

use std::process::ExitCode;

use clap::Parser;
use mooncake_pd::args::{Cli, Command};
use mooncake_pd::commands::{diff, inspect, plan, transfer};
use mooncake_pd::failure::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A reader that has gone away must not turn help into a failure.
            let _ = error.print();
            let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
            return ExitCode::from(code);
        }
    };
    let result = match &cli.command {
        Command::Transfer(args) => transfer(args, cli.json),
        Command::Inspect(args) => inspect(args, cli.json),
        Command::Plan(args) => plan(args, cli.json),
        Command::Diff(args) => diff(args, cli.json),
    };
    let output = result.unwrap_or_else(|failure| failure.output(cli.json));
    match output.print() {
        Ok(()) => ExitCode::from(output.exit.code()),
        Err(_) => ExitCode::from(Exit::Unverified.code()),
    }
}
