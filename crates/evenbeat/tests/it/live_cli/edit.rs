//! `evenbeat job edit` and `set`.

use crate::live_cli::typed::shown;
use crate::support::served::Served;

/// An editor that is a script.
fn edited(served: &Served, script: &str) -> String {
    let mut command = served.command(&["job", "edit", "shop"]);
    command.env("EDITOR", script).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", served.folder.path()).stdin(std::process::Stdio::null());
    let text = shown(&command.output().unwrap());
    crate::live_cli::mask::masked(&text.replace(&served.folder.path().display().to_string(), "FOLDER"))
}

fn drafts(served: &Served) -> Vec<String> {
    let names = std::fs::read_dir(served.folder.path()).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("evenbeat-shop-")).collect()
}

#[test]
fn a_definition_is_edited_as_a_job_file() {
    let served = Served::start();
    served.put("shop", r#"{"command":["crawl"],"every":"6h","labels":{"team":"news"}}"#);
    let done = edited(&served, "sed -i 's/6h/8h/; s/news/prices/'");
    assert!(done.contains("every = \"6h\" → \"8h\""), "{done}");
    assert!(done.contains("labels.team = \"news\" → \"prices\""), "{done}");
    assert!(done.ends_with("--- exit 0\n"), "{done}");
    assert_eq!(served.get("/api/v1/jobs/shop").json()["definition"]["every"], "8h");
    assert_eq!(edited(&served, "true"), "nothing was changed\n--- exit 0\n");
    assert_eq!(edited(&served, "truncate -s 0"), "nothing was changed\n--- exit 0\n");
    assert!(drafts(&served).is_empty(), "nothing is left behind");

    let failed = edited(&served, "false");
    assert!(failed.contains("the editor `false` failed"), "{failed}");
    let renamed = edited(&served, "sed -i 's/\"shop\"/\"other\"/'");
    assert!(renamed.contains("the job is called `shop`, and cannot be renamed to `other`"), "{renamed}");
    assert!(renamed.contains("your text is in FOLDER/evenbeat-shop-"), "{renamed}");
    let wrong = edited(&served, "sed -i 's/8h/8/'");
    assert!(wrong.contains("your text is in") && wrong.ends_with("--- exit 1\n"), "{wrong}");
    assert_eq!(drafts(&served).len(), 2, "what was typed is kept");
    assert_eq!(served.get("/api/v1/jobs/shop").json()["revision"], 2);
}

#[test]
fn an_edit_is_not_lost_when_someone_else_was_quicker() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let url = served.url();
    let program = env!("CARGO_BIN_EXE_evenbeat");
    // While this editor is open, another person changes the job.
    let script =
        format!("f() {{ {program} job set shop cost=3 --server {url} >&2; sed -i s/6h/9h/ \"$1\"; }}; f");
    let done = edited(&served, &script);
    assert!(done.contains("someone else changed the job meanwhile"), "{done}");
    assert!(
        done.contains("your text is in FOLDER/evenbeat-shop-") && done.ends_with("--- exit 4\n"),
        "{done}"
    );
    let kept = std::fs::read_to_string(served.folder.path().join(&drafts(&served)[0])).unwrap();
    assert!(kept.contains("every = \"9h\""), "{kept}");
    let job = served.get("/api/v1/jobs/shop").json();
    assert_eq!((&job["definition"]["every"], &job["definition"]["cost"]), (&"6h".into(), &3.into()));
}

#[test]
fn single_fields_are_set() {
    let served = Served::start();
    served.add("shop", r#""every":"6h","labels":{"team":"news"}"#);
    let set = served.said(&["job", "set", "shop", "every=8h", "cost=2", "--unset", "labels.team"]);
    assert!(set.starts_with("shop runs next at "), "{set}");
    let definition = served.get("/api/v1/jobs/shop").json()["definition"].clone();
    assert_eq!((&definition["every"], &definition["cost"]), (&"8h".into(), &2.into()));
    assert!(definition.get("labels").is_none(), "{definition}");
    assert!(served.said(&["job", "set", "shop", "cost=0"]).contains("exit 1"));
    assert!(served.said(&["job", "set", "shop"]).contains("exit 2"));
    assert!(served.said(&["job", "set", "none", "cost=1"]).contains("exit 3"));
}
