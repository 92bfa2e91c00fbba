//! `evenbeat check`: what goes where, and how it ends.

use std::path::{Path, PathBuf};

use evenbeat::testing::cli::{Exit, check};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A file of these bytes, that only this test has.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

struct Checked {
    exit: Exit,
    out: String,
    err: String,
}

fn checked(files: &[PathBuf], json: bool, color: bool) -> Checked {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let now = "2026-02-04T10:00:00Z".parse().unwrap();
    let exit = check::run(files, json, color, now, &mut out, &mut err).unwrap();
    // The path of the files does not matter here.
    let text = |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        let folder = |name: &str| file(name).display().to_string() + "/";
        let tmp = concat!(env!("CARGO_TARGET_TMPDIR"), "/");
        text.replace(&folder("good_files"), "").replace(&folder("bad_files"), "").replace(tmp, "")
    };
    Checked { exit, out: text(out), err: text(err) }
}

#[test]
fn a_good_file_is_one_line() {
    let good = written("good.toml", b"[[job]]\nname = \"a\"\ncommand = [\"true\"]\nevery = \"1h\"\n");
    let Checked { exit, out, err } = checked(&[good], false, false);
    assert_eq!((exit, out.as_str(), err.as_str()), (Exit::Ok, "good.toml: 1 job\n", ""));
}

#[test]
fn what_no_server_of_this_version_runs_is_an_error() {
    let Checked { exit, out, err } = checked(&[file("good_files/every_field.toml")], false, false);
    assert_eq!((exit, out.as_str()), (Exit::Failed, ""));
    insta::assert_snapshot!(err);
}

#[test]
fn a_crontab_is_sent_to_the_command_that_reads_it() {
    let crontab = written("crontab.txt", b"MAILTO=ops\n0 3 * * * backup.sh\n@daily tidy.sh\n");
    let Checked { exit, err, .. } = checked(&[crontab], false, false);
    assert_eq!(exit, Exit::Usage);
    assert!(
        err.contains("crontab.txt looks like a crontab, not a job file (try `evenbeat analyze crontab.txt`)"),
        "{err}"
    );
}

#[test]
fn warnings_are_shown_and_are_no_failure() {
    let Checked { exit, out, err } = checked(&[file("good_files/with_warnings.toml")], false, false);
    assert_eq!((exit, out.as_str()), (Exit::Ok, "with_warnings.toml: 5 jobs, 6 warnings\n"));
    assert_eq!(err.matches("warning: ").count(), 6, "{err}");
}

#[test]
fn a_bad_file_does_not_silence_a_good_one() {
    let files = [
        file("bad_files/cron_field.toml"),
        file("good_files/with_warnings.toml"),
        file("bad_files/missing.toml"),
        written("latin1.toml", b"# ok\n# caf\xe9\n"),
    ];
    let Checked { exit, out, err } = checked(&files, false, false);
    assert_eq!((exit, out.as_str()), (Exit::Usage, "with_warnings.toml: 5 jobs, 6 warnings\n"));
    insta::assert_snapshot!(err);
}

#[test]
fn a_file_that_is_too_large_is_not_even_read() {
    let path = written("large.toml", &vec![b'#'; (1 << 20) + 1]);
    let Checked { exit, err, .. } = checked(&[path], false, false);
    assert_eq!(exit, Exit::Usage);
    insta::assert_snapshot!(err);
}

#[test]
fn machines_get_one_document() {
    let files = [
        file("bad_files/several_faults.toml"),
        file("good_files/with_warnings.toml"),
        file("bad_files/missing.toml"),
    ];
    let Checked { exit, out, err } = checked(&files, true, false);
    assert_eq!((exit, err.as_str()), (Exit::Usage, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn colour_is_there_only_if_asked_for() {
    let files = [file("bad_files/cron_field.toml")];
    assert!(checked(&files, false, true).err.contains("\u{1b}["));
    assert!(!checked(&files, false, false).err.contains('\u{1b}'));
}

#[test]
fn with_a_configuration_it_says_who_is_not_alerted() {
    let job = |name: &str, alerts: &str| {
        format!("[[job]]\nname = \"{name}\"\ncommand = [\"true\"]\nevery = \"1h\"\n{alerts}\n")
    };
    let text = [job("a", ""), job("b", "alerts = \"none\""), job("c", "alerts = [\"pager\"]")].concat();
    let jobs = written("routed.toml", text.as_bytes());
    let channel = |name: &str| format!("[alerts.channels.{name}]\nkind = 'command'\ncommand = ['true']\n");
    let both = format!("[alerts]\ndefault = ['mail']\n{}{}", channel("mail"), channel("pager"));
    let check = |name: &str, config: &str, more: &[&str]| {
        let config = written(name, config.as_bytes());
        let mut program = crate::serve::node::program();
        program.env("HOME", "/home/ann").arg("check").arg(&jobs).arg("--config").arg(&config).args(more);
        let done = program.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (code, out, err) = check("both.toml", &both, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.ends_with("routed.toml: 3 jobs\nno alerts about 1 job (`alerts = \"none\"`): b\n"), "{out}");

    let one = format!("[alerts]\ndefault = ['mail']\n{}", channel("mail"));
    let (code, _, err) = check("one.toml", &one, &[]);
    let expected = "error: job `c` names the channel `pager`, which the configuration does not have\n";
    assert_eq!((code, err.as_str()), (Some(1), expected));
    let (_, out, _) = check("one.toml", &one, &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let unknown = serde_json::json!([{"job": "c", "channel": "pager"}]);
    assert_eq!((&report["ok"], &report["alerts"]["unknown_channels"]), (&false.into(), &unknown), "{report}");

    let (code, out, _) = check("none.toml", "", &[]);
    assert_eq!(code, Some(1), "a job that names a channel counts on it");
    assert!(out.ends_with("no alerts about 2 jobs (there are no channels): a, b\n"), "{out}");
    let (code, _, err) = check("wrong.toml", "alerts.default = ['nobody']", &[]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("run `evenbeat config --check` to see why"), "{err}");
}
