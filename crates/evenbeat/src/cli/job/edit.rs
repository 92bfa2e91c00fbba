//! `evenbeat job edit`: the definition of a job in an editor.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use evenbeat_core::ids::JobKey;
use evenbeat_core::zone::Zones;

use super::super::apply::{as_job_file, print_changes};
use super::super::client::{ApiRequest, CommandError};
use super::super::confirm::{asked, can_ask};
use super::super::format::NOTICE;
use super::super::remote::{CommandResult, RemoteContext};
use super::super::{Exit, job_file};
use crate::jobfile::{self, LoadedFiles, SourceText};
use crate::value_json::to_json;
use crate::views::model::{ApplyAnswer, ApplyRequest, JobDefinition, JobPut, JobView};

/// Arguments of `evenbeat job edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Job key.
    key: JobKey,
    /// Save without asking for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Editor [default: the variable `VISUAL` or `EDITOR`, or `vi`].
    #[arg(long, env = "VISUAL", value_name = "COMMAND", hide_env = true)]
    editor: Option<String>,
}

/// The text that is edited. The file is removed unless it is to be kept.
struct Draft {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What to do next.
enum Next {
    Save(JobDefinition),
    EditAgain(String),
    Leave,
}

pub(super) fn run(args: &EditArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let (mut job, mut tag) = fetch(&args.key, remote)?;
    let mut original = as_job_file(&job.definition)?;
    let mut draft = Draft::new(&args.key, &original)?;
    let mut note = "Edit the job, then save and close. An empty file changes nothing.".to_owned();
    let mut text = original.clone();
    loop {
        draft.write(&note, &text)?;
        draft.edit(args.editor.as_deref())?;
        text = draft.read()?;
        if text.trim().is_empty() || text.trim() == original.trim() {
            writeln!(remote.out, "nothing was changed")?;
            return Ok(Exit::Ok);
        }
        let definition = match check(args, &text, remote)? {
            Next::Save(definition) => definition,
            Next::EditAgain(why) => {
                note = why;
                continue;
            }
            Next::Leave => {
                draft.keep(remote)?;
                return Ok(Exit::Failed);
            }
        };
        let request =
            ApiRequest::put(&["jobs", args.key.as_str()]).header("if-match", Some(&tag)).json(&definition);
        match remote.send_and_print::<JobPut>(request, |put, remote| super::tell_next(&put.job, remote)) {
            Ok(_) => return Ok(Exit::Ok),
            Err(CommandError::Problem(problem)) if problem.status == 412 => {
                (job, tag) = fetch(&args.key, remote)?;
                original = as_job_file(&job.definition)?;
                writeln!(remote.err, "{NOTICE}someone else changed the job meanwhile{NOTICE:#}")?;
                if !can_ask() {
                    draft.keep(remote)?;
                    return Ok(Exit::Conflict);
                }
                note = format!("Someone else changed the job meanwhile. It is now:\n\n{original}");
            }
            Err(error) => {
                draft.keep(remote)?;
                return Err(error);
            }
        }
    }
}

fn fetch(key: &JobKey, remote: &RemoteContext<'_>) -> Result<(JobView, String), CommandError> {
    let answer = remote.send(ApiRequest::get(&["jobs", key.as_str()]))?;
    let tag = answer.header("etag").unwrap_or("*").to_owned();
    Ok((answer.read()?, tag))
}

/// Checks the text, shows what would change, and asks.
fn check(args: &EditArgs, text: &str, remote: &mut RemoteContext<'_>) -> Result<Next, CommandError> {
    let wrong = |why: String, remote: &mut RemoteContext<'_>| -> Result<Next, CommandError> {
        write!(remote.err, "{why}")?;
        if !can_ask() || asked("Edit again? [Y/n] ", remote)?.starts_with('n') {
            return Ok(Next::Leave);
        }
        Ok(Next::EditAgain(why))
    };
    let source = SourceText { name: args.key.to_string(), text: text.to_owned() };
    let loaded = jobfile::load(&[source], remote.now, &mut Zones::new()).and_then(LoadedFiles::supported);
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(faults) => return wrong(faults.render(false), remote),
    };
    let jobs: Vec<_> = loaded.files.iter().flat_map(|file| &file.jobs).collect();
    let [job] = jobs.as_slice() else {
        return wrong(format!("error: keep one `[[job]]` in the file, not {}\n", jobs.len()), remote);
    };
    if job.job.key != args.key {
        let why =
            format!("error: the job is called `{}`, and cannot be renamed to `{}`\n", args.key, job.job.key);
        return wrong(why, remote);
    }
    let fields = job.spec.table().iter().map(|(name, value)| (name.clone(), to_json(value)));
    let definition = JobDefinition(fields.collect());
    let preview = ApplyRequest { jobs: vec![definition.clone()], prune: false, dry_run: true };
    let preview: ApplyAnswer = match remote.send(ApiRequest::post(&["apply"]).json(&preview)) {
        Ok(answer) => answer.read()?,
        Err(error @ CommandError::Problem(_)) => return wrong(format!("error: {error}\n"), remote),
        Err(error) => return Err(error),
    };
    for doubt in &preview.warnings {
        writeln!(remote.err, "{NOTICE}warning{NOTICE:#}: {}", doubt.detail)?;
    }
    if !remote.json {
        print_changes(&preview, remote)?;
    }
    if args.yes || !can_ask() {
        return Ok(Next::Save(definition));
    }
    match asked("Save? [Y/n/e to edit again] ", remote)?.as_str() {
        "" | "y" | "yes" => Ok(Next::Save(definition)),
        "e" | "edit" => Ok(Next::EditAgain("Edit the job, then save and close.".to_owned())),
        _ => Ok(Next::Leave),
    }
}

impl Draft {
    /// A file that only this user can read: a definition may hold what others must not see.
    fn new(key: &JobKey, text: &str) -> Result<Draft, CommandError> {
        let name: String = key
            .as_str()
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' })
            .collect();
        let path = std::env::temp_dir().join(format!("evenbeat-{name}-{}.toml", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|it| bad(&path, &it))?;
        file.write_all(text.as_bytes()).map_err(|it| bad(&path, &it))?;
        Ok(Draft { path, is_kept: false })
    }

    fn write(&self, note: &str, text: &str) -> Result<(), CommandError> {
        let note: String =
            note.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
        fs::write(&self.path, format!("{note}\n{text}")).map_err(|it| bad(&self.path, &it))
    }

    /// Opens the editor and waits until it ends.
    fn edit(&self, editor: Option<&str>) -> Result<(), CommandError> {
        let editor = editor.map(str::to_owned).or_else(|| std::env::var("EDITOR").ok());
        let editor = editor.filter(|it| !it.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
        // A shell, because the variable may have arguments and quotes. The path is an argument of its own.
        let ended =
            Command::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg("sh").arg(&self.path).status();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(CommandError::Bad(format!(
                "the editor `{editor}` failed ({status}); nothing was changed"
            ))),
            Err(error) => Err(CommandError::Bad(format!("the editor `{editor}` cannot be started: {error}"))),
        }
    }

    /// What was written, without the note at the top.
    fn read(&self) -> Result<String, CommandError> {
        let source = job_file::read(&self.path)
            .map_err(|why| CommandError::Bad(format!("{} {why}", self.path.display())))?;
        let lines = source.text.lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty());
        Ok(lines.flat_map(|line| [line, "\n"]).collect())
    }

    fn keep(&mut self, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
        self.is_kept = true;
        writeln!(remote.err, "your text is in {}", self.path.display())?;
        Ok(())
    }
}

fn bad(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Bad(format!("{}: {error}", path.display()))
}
