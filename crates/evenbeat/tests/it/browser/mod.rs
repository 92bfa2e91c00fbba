//! The pages in a real browser: Chromium of the system, driven by the scripts in `tests/browser`.
//!
//! Each test starts the program with a fleet that has something of everything, and runs one script against it. A script
//! prints what it finds wrong and then fails.

mod fleet;
mod flows;
mod pages;

use std::path::Path;
use std::process::Command;

use crate::serve::node::Node;
use crate::support::test_tools::python;

/// A server with a fleet, and tokens for its pages.
struct Site {
    node: Node,
    /// The address of its pages.
    url: String,
    admin: String,
    viewer: String,
}

impl Site {
    /// The usual fleet, in which everything has happened that pages show.
    fn busy() -> Site {
        let mut node = Node::with(&fleet::job_file());
        node.start_with(&fleet::settings());
        fleet::live(&node);
        Site::of(node)
    }

    /// No jobs yet.
    fn empty() -> Site {
        let mut node = Node::with("");
        node.start_with(&fleet::QUIET);
        Site::of(node)
    }

    fn of(node: Node) -> Site {
        let (admin, viewer) = (node.token("admin"), node.token("viewer"));
        let link = String::from_utf8(node.ask(&["login", "--print"]).stdout).unwrap();
        let url = link.split("/login").next().unwrap().trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{link}");
        Site { node, url, admin, viewer }
    }

    /// An address on which `{JOB}` stands for the id of that job's last run.
    fn path(&self, path: &str) -> String {
        let Some((before, rest)) = path.split_once('{') else { return path.to_owned() };
        let (job, after) = rest.split_once('}').unwrap();
        let run = self.node.runs(job).remove(0);
        format!("{before}{}{after}", run["id"].as_str().unwrap())
    }

    /// Runs a script. What it prints is why the test fails.
    #[track_caller]
    fn script(&self, name: &str, args: &[&str]) {
        let done = self.command(name).args(args).output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{name} {}:\n{said}{errors}", args.join(" "));
    }

    fn command(&self, name: &str) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(name);
        assert!(script.exists(), "there is no {}", script.display());
        let mut command = python();
        command.arg("-B").arg(script);
        command.env("EVENBEAT_URL", &self.url);
        command.env("EVENBEAT_ADMIN_TOKEN", &self.admin).env("EVENBEAT_VIEWER_TOKEN", &self.viewer);
        command
    }
}
