//! `evenbeat config` as people use it.

use super::*;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("config-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let folder = Folder(folder);
        // So that the system's own is never looked at.
        folder.write(".config/evenbeat/evenbeat.toml", "", 0o600);
        folder
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }

    /// What the command says and how it ends, with nothing else in its environment, without the folder.
    fn config(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = Command::cargo_bin("evenbeat").unwrap();
        command.env_clear().env("HOME", &self.0).envs(variables.iter().copied());
        let done = command.arg("config").args(args).current_dir(&self.0).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&format!("{}/", self.0.display()), "");
        format!("{}{}exit {}", text(done.stdout), text(done.stderr), done.status.code().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_file_is_found_where_it_is_said_to_be() {
    let folder = Folder::new("found");
    let line = |args: &[&str], variables: &[(&str, &str)]| {
        let said = folder.config(args, variables);
        said.lines().find(|line| line.starts_with("listen")).unwrap_or(&said).to_owned()
    };
    folder.write(".config/evenbeat/evenbeat.toml", "listen = '127.0.0.1:1'", 0o644);
    folder.write("xdg/evenbeat/evenbeat.toml", "listen = '127.0.0.1:2'", 0o644);
    let named = folder.write("named.toml", "listen = '127.0.0.1:3'", 0o644);
    let xdg = folder.0.join("xdg").display().to_string();
    assert_eq!(line(&[], &[]), "listen = \"127.0.0.1:1\"  # evenbeat.toml:1");
    assert_eq!(line(&[], &[("XDG_CONFIG_HOME", &xdg)]), "listen = \"127.0.0.1:2\"  # evenbeat.toml:1");
    let both = [("XDG_CONFIG_HOME", xdg.as_str()), ("EVENBEAT_CONFIG", named.as_str())];
    assert_eq!(line(&[], &both), "listen = \"127.0.0.1:3\"  # named.toml:1");
    let flag = ["--config", "xdg/evenbeat/evenbeat.toml"];
    assert_eq!(line(&flag, &both), "listen = \"127.0.0.1:2\"  # evenbeat.toml:1");
    let set = ["--listen", "127.0.0.1:4", "--set", "log.level=debug"];
    assert_eq!(line(&set, &both), "listen = \"127.0.0.1:4\"  # --listen");
}

#[test]
fn check_only_validates() {
    let folder = Folder::new("check");
    folder.write("good.toml", "listen = '127.0.0.1:1'", 0o600);
    folder.write("bad.toml", "listen = 1", 0o600);
    assert_eq!(folder.config(&["--check", "--config", "good.toml"], &[]), "good.toml: valid\nexit 0");
    let bad = folder.config(&["--check", "--config", "bad.toml"], &[]);
    assert!(bad.contains(" --> bad.toml:1:10\n") && bad.ends_with("1 error\nexit 1"), "{bad}");
    let json = folder.config(&["--json", "--config", "bad.toml"], &[]);
    assert!(json.contains("\"ok\": false") && json.contains("\"line\": 1"), "{json}");
    let json = folder.config(&["--check", "--json", "--config", "good.toml"], &[]);
    assert!(json.contains("\"ok\": true"), "{json}");
}

#[test]
fn a_bad_command_line_and_a_file_that_is_not_there_end_with_2() {
    let folder = Folder::new("usage");
    folder.write("bytes.toml", b"# ok\n\xff", 0o600);
    folder.write("large.toml", vec![b'#'; (1 << 20) + 1], 0o600);
    let mut said = String::new();
    for args in [
        ["--set", "log.levl=1"],
        ["--config", "none.toml"],
        ["--config", "bytes.toml"],
        ["--config", "large.toml"],
    ] {
        said += &folder.config(&args, &[("EVENBEAT_LOG_FORMAT", "xml")]);
        said += "\n\n";
    }
    insta::assert_snapshot!(said);
}

#[test]
fn files_that_others_can_change_are_refused() {
    let folder = Folder::new("modes");
    for (mode, is_good) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
        folder.write("evenbeat.toml", "", mode);
        let said = folder.config(&["--check", "--config", "evenbeat.toml"], &[]);
        assert_eq!(said.ends_with("exit 0"), is_good, "{mode:o}: {said}");
    }
    let mut said =
        folder.config(&["--check", "--config", "evenbeat.toml"], &[("EVENBEAT_LOG_LEVEL", "loud")]);
    said += "\n\n";
    said += &folder.config(&["--check"], &[("MAX_PAGES_PER_RUN", "50")]);
    insta::assert_snapshot!(said);
}
