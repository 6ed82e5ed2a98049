//! `copytune manual`: the manual pages and the shells' completions, made from the command line's own definition.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;
use copytune_core::options;
use roff::{Inline, Roff, bold, italic, roman};

use super::output::write_whole;
use super::{CommandLine, Outcome};

/// Write the manual pages and the completions for bash, zsh and fish
///
/// They lie below the directory as below /usr/share.
///
/// Example: copytune manual ~/.local/share
#[derive(Parser)]
#[command(hide = true)]
pub struct Args {
    /// The directory, such as ~/.local/share
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Where each shell looks for the completions of `copytune`, below /usr/share.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/copytune"),
    (Shell::Zsh, "zsh/site-functions/_copytune"),
    (Shell::Fish, "fish/vendor_completions.d/copytune.fish"),
];

impl Args {
    /// Writes all.
    pub fn run(self) -> Outcome {
        let mut command = CommandLine::command();
        command.build();
        pages(&command, &self.dir.join("man/man1"))?;
        for (shell, place) in COMPLETIONS {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::command(), "copytune", &mut text);
            write(&self.dir.join(place), &text)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A page for the command and for each of its subcommands, as far as they are shown.
fn pages(command: &Command, folder: &Path) -> Outcome {
    let name = name(command);
    write(&folder.join(format!("{name}.1")), &page(command)?)?;
    for subcommand in shown(command) {
        pages(subcommand, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Its name as a page's: copytune-run.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut more = Roff::new();
    let is_whole = name(command) == "copytune";
    if shown(command).next().is_some() {
        subcommands(command, &mut more);
    }
    if is_whole || name(command) == "copytune-env" {
        environment(&mut more);
    } else if command.get_after_help().is_some() || command.get_after_long_help().is_some() {
        more.to_writer(&mut text)?;
        man.render_extra_section(&mut text)?;
        more = Roff::new();
    }
    if is_whole {
        section(&mut more, "EXIT STATUS");
        more.text([roman(
            "0: all well. 1: a failure, told in one line. 2: wrong usage. copytune run ends as its program does.",
        )]);
    } else {
        section(&mut more, "SEE ALSO");
        more.text([bold("copytune"), roman("(1)")]);
    }
    more.to_writer(&mut text)?;
    Ok(text)
}

fn section(page: &mut Roff, title: &str) {
    page.control("SH", [title]);
}

/// A term and what it means.
fn entry(page: &mut Roff, term: impl Into<Vec<Inline>>, meaning: String) {
    page.control("TP", []);
    page.text(term);
    page.text([roman(meaning)]);
}

fn subcommands(command: &Command, page: &mut Roff) {
    section(page, "COMMANDS");
    for subcommand in shown(command) {
        let about = subcommand.get_about().map(ToString::to_string);
        let term = [bold(name(subcommand)), roman("(1)")];
        entry(page, term, about.unwrap_or_default());
    }
}

/// The variables of the library and those of the command, from the table that they are read by.
fn environment(page: &mut Roff) {
    section(page, "ENVIRONMENT");
    page.text([roman("The library reads these variables at MPI_Init. An empty value counts as unset.")]);
    for variable in options::variables() {
        let meaning = format!(
            "{} Allowed: {}. Default: {}.",
            variable.about,
            variable.allowed(),
            variable.default
        );
        entry(page, [bold(variable.name)], meaning);
    }
    page.control("PP", []);
    page.text([roman("The command alone reads:")]);
    for (name, about) in options::COMMAND_VARIABLES {
        entry(page, [italic(*name)], (*about).to_owned());
    }
}

fn write(file: &Path, text: &[u8]) -> Outcome {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    write_whole(file, &String::from_utf8_lossy(text))?;
    Ok(ExitCode::SUCCESS)
}
