//! A page in a real browser, without a window.

use super::{find_command, private_dir};
use crate::common::job::Job;
use std::path::{Path, PathBuf};

/// Chromium, if it is installed.
#[derive(Debug, Clone)]
pub struct Browser(PathBuf);

impl Browser {
    /// The browser; `None`, and a line that says so, where there is none: `.ci/deps` installs it where the system has a
    /// package, and copytune itself does not need it.
    pub fn find() -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = names.into_iter().find_map(find_command);
        if found.is_none() {
            println!("no chromium here: pages are not checked in a browser");
        }
        found.map(Self)
    }

    /// What it says on its console while it shows a page, and what the options make it print.
    fn show(&self, page: &Path, options: &[String]) -> (Vec<String>, String) {
        let profile = private_dir();
        // It is several processes.
        let outcome = Job::alone(&self.0)
            .cores(2)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
            ])
            // Nothing outside can be reached, by the page or by the browser itself.
            .args([
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ])
            .args(["--enable-logging=stderr", "--v=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(options)
            .arg(format!("file://{}", page.display()))
            .run();
        assert!(outcome.status.success(), "{}", outcome.stderr);
        let console = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("CONSOLE"));
        (console.map(str::to_owned).collect(), outcome.stdout)
    }

    /// The lines on its console; a page that is all right has none.
    pub fn complaints(&self, page: &Path) -> Vec<String> {
        self.show(page, &["--dump-dom".to_owned()]).0
    }

    /// The page after its scripts have run.
    pub fn dom(&self, page: &Path, width: u32) -> String {
        let options = [
            "--dump-dom".to_owned(),
            format!("--window-size={width},900"),
        ];
        self.show(page, &options).1
    }

    /// The page as a picture (PNG).
    pub fn picture(&self, page: &Path, width: u32, dark: bool) -> Vec<u8> {
        let dir = private_dir();
        let file = dir.path().join("picture.png");
        let scheme = if dark { 0 } else { 1 };
        self.show(
            page,
            &[
                format!("--screenshot={}", file.display()),
                format!("--window-size={width},3000"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            ],
        );
        std::fs::read(&file).expect("the picture is there")
    }

    /// The page as it is printed (PDF).
    pub fn print(&self, page: &Path) -> Vec<u8> {
        let dir = private_dir();
        let file = dir.path().join("print.pdf");
        self.show(page, &[format!("--print-to-pdf={}", file.display())]);
        std::fs::read(&file).expect("the print is there")
    }
}
