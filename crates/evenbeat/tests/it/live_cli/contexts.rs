//! Servers by name.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;

use crate::live_cli::typed::{evenbeat, shown};
use crate::support::served::Served;

#[test]
fn servers_have_names() {
    let served = Served::start();
    let home = served.folder.path().display().to_string();
    let said = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = evenbeat(args);
        command.env("HOME", &home).envs(variables.iter().copied()).current_dir(served.folder.path());
        let text = shown(&command.output().unwrap());
        text.replace(&served.address.to_string(), "ADDRESS").replace(&home, "HOME")
    };
    let url = served.url();
    served.file("token", &served.admin);
    let mut text = String::new();
    let mut note = |variables: &[(&str, &str)], args: &[&str]| {
        let args_text = args.join(" ").replace(&url, "http://ADDRESS");
        write!(text, "$ evenbeat {args_text}\n{}\n", said(variables, args)).unwrap();
    };
    note(&[], &["context", "list"]);
    note(&[], &["context", "add", "here", "--server", &url, "--token-file", "token"]);
    note(&[], &["context", "add", "gone", "--server", "http://127.0.0.1:1"]);
    note(&[], &["context", "add", "here", "--server", &url]);
    note(&[], &["context", "add", "a b", "--server", &url]);
    note(&[], &["context", "add", "bad", "--server", "nowhere"]);
    note(&[], &["job", "list", "--context", "here"]);
    note(&[("EVENBEAT_CONTEXT", "here")], &["job", "list"]);
    note(
        &[("EVENBEAT_CONTEXT", "gone"), ("EVENBEAT_TOKEN", &served.admin)],
        &["job", "list", "--server", &url],
    );
    note(&[], &["job", "list", "--context", "hre"]);
    note(&[], &["job", "list", "--context", "here", "--server", "http://127.0.0.1:2"]);
    note(&[], &["context", "use", "here"]);
    note(&[], &["job", "list"]);
    note(&[], &["job", "list", "--context", "gone"]);
    note(&[], &["context", "list"]);
    note(&[], &["context", "list", "--json"]);
    note(&[], &["context", "use", "--none"]);
    note(&[], &["context", "remove", "gone"]);
    note(&[], &["context", "remove", "gone"]);
    insta::assert_snapshot!(text);
    assert!(!text.contains(&served.admin), "{text}");
    let file = served.folder.path().join(".config/evenbeat/contexts.toml");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&served.admin));
    std::fs::write(&file, "current = \"x\"\nsurprise = 1\n").unwrap();
    let broken = said(&[], &["job", "list"]);
    assert!(broken.contains("contexts.toml: unknown field `surprise`"), "{broken}");
}
