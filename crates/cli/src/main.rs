//! The `mooncake-pd` command.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use mooncake_pd::args::{Cli, Command};
use mooncake_pd::commands::{diff, inspect, plan, transfer};
use mooncake_pd::failure::{Exit, Failure};
use mooncake_pd::output::Output;
use mooncake_pd::remote::target;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
            return ended(error.print(), code);
        }
    };
    let result = match &cli.command {
        Command::Transfer(args) => transfer(args, cli.json),
        Command::Inspect(args) => inspect(args, cli.json),
        Command::Plan(args) => plan(args, cli.json),
        Command::Diff(args) => diff(args, cli.json),
        Command::Target => target()
            .map(|()| Output::text(String::new(), Exit::Ok))
            .map_err(Failure::from),
    };
    let output = result.unwrap_or_else(|failure| failure.output(cli.json));
    ended(output.print(), output.exit.code())
}

/// The exit code, unless the result could not be written. A reader that has
/// gone away is no error.
fn ended(written: io::Result<()>, code: u8) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // If there is no standard error either, the exit code must do.
            let _ = writeln!(io::stderr(), "error: can't write the result: {error}");
            ExitCode::from(Exit::Usage.code())
        }
        _ => ExitCode::from(code),
    }
}
