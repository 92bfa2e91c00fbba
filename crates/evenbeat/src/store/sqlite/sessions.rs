//! Sessions and epochs.

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{Beat, Fencing, Joined, Lives, RunRow, SessionKind, SessionSpec, StoreDown};
use rusqlite::{OptionalExtension, Result, params};

use super::open::OWNER_SETTING;
use super::rows::{self, Id};
use super::write_tx::WriteTx;
use crate::store::columns::{pools_to_text, stored_number, timings_from_text, timings_to_text};
use crate::store::keyword::Keyword;

impl WriteTx<'_> {
    pub(super) fn do_join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined> {
        let found: Option<String> = self
            .read
            .one("SELECT value FROM setting WHERE name = 'timings'", [], |row| row.get(0))
            .optional()?;
        // Timings that cannot be read are replaced by those of the first session that joins.
        match found.as_deref().and_then(timings_from_text) {
            Some(cluster) if cluster != *timings => return Ok(Joined::OtherTimings(cluster)),
            Some(_) => {}
            None => {
                self.run(
                    "INSERT INTO setting (name, value) VALUES ('timings', ?1)
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    [timings_to_text(timings)],
                )?;
            }
        }
        self.know(session)?;
        let (epoch, is_open) = self.read.find_epoch()?;
        Ok(Joined::Welcome { epoch, is_open, now: self.now })
    }

    /// Adds a session. An existing one stays as it is, dead or not.
    pub(super) fn know(&mut self, spec: &SessionSpec) -> Result<()> {
        self.run(
            "INSERT INTO session (id, node, name, boot_id, kind, pools, beat, is_dead, is_draining, joined_at, beaten_at,
                                  home, zone_data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING",
            params![
                Id::of(spec.id.0),
                spec.node.as_str(),
                spec.name,
                Id::of(spec.boot_id),
                spec.kind.keyword(),
                pools_to_text(&spec.pools),
                self.now.as_millis(),
                Id::of(spec.home),
                spec.zone_data,
            ],
        )?;
        Ok(())
    }

    pub(super) fn do_adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>> {
        let Some(mine) = self.read.find_session(me)?.filter(|it| !it.is_dead) else { return Ok(Vec::new()) };
        let is_of_all = matches!(lives, Lives::OfAllNodes);
        let earlier = self.read.many(
            "SELECT id FROM session WHERE is_dead = 0 AND id <> ?1 AND kind = ?2
             AND (?3 OR node = ?4 AND boot_id = ?5 AND home = ?6)",
            params![
                Id::of(me.0),
                SessionKind::Node.keyword(),
                is_of_all,
                mine.spec.node.as_str(),
                Id::of(mine.spec.boot_id),
                Id::of(mine.spec.home),
            ],
            |row| rows::id(row, 0),
        )?;
        for life in earlier {
            self.run("UPDATE session SET is_dead = 1 WHERE id = ?1", [Id::of(life)])?;
            self.run(
                "UPDATE open_run SET session_id = ?2 WHERE session_id = ?1",
                [Id::of(life), Id::of(me.0)],
            )?;
        }
        self.read.open_runs_of(me)
    }

    pub(super) fn do_beat(&mut self, me: SessionId) -> Result<Beat> {
        let n_beaten = self.run(
            "UPDATE session SET beat = beat + 1, beaten_at = ?2 WHERE id = ?1 AND is_dead = 0",
            params![Id::of(me.0), self.now.as_millis()],
        )?;
        if n_beaten == 0 {
            return Ok(Beat::Dead);
        }
        let (epoch, is_open) = self.read.find_epoch()?;
        let is_draining = self.read.is_draining(me)?;
        let runs = self.read.open_runs_of(me)?;
        Ok(Beat::Alive { epoch, is_open, now: self.now, is_draining, runs })
    }

    pub(super) fn do_drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool> {
        let sql = "UPDATE session SET is_draining = ?2 WHERE id = ?1 AND is_dead = 0";
        Ok(self.run(sql, params![Id::of(session.0), is_draining])? == 1)
    }

    pub(super) fn do_leave(&mut self, me: SessionId) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM open_run WHERE session_id = ?1)";
        let has_runs: bool = self.read.one(sql, [Id::of(me.0)], |row| row.get(0))?;
        if !has_runs {
            self.run("UPDATE session SET is_dead = 1 WHERE id = ?1", [Id::of(me.0)])?;
        }
        Ok(!has_runs)
    }

    pub(super) fn do_fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>> {
        if !self.is_current_and_open(epoch)? {
            return Ok(vec![Fencing::Closed; silent.len()]);
        }
        let sql = "UPDATE session SET is_dead = 1 WHERE id = ?1 AND beat = ?2 AND is_dead = 0";
        let fence_one = |it: &Silent| {
            let n_fenced = self.run(sql, params![Id::of(it.session.0), stored_number(it.beat)])?;
            Ok(if n_fenced == 1 { Fencing::Fenced } else { Fencing::NotAsSeen })
        };
        silent.iter().map(fence_one).collect()
    }

    pub(super) fn do_open_epoch(&mut self, epoch: Epoch) -> Result<bool> {
        let is_current = self.read.find_epoch()?.0 == epoch;
        if is_current {
            self.run("UPDATE epoch SET is_open = 1 WHERE no = ?1", [stored_number(epoch.0)])?;
        }
        Ok(is_current)
    }

    /// Begins a new, closed epoch: for a file that was restored from a backup, which does not know the runs granted
    /// since. The next data directory that uses the file becomes its owner.
    pub fn new_epoch(&mut self) -> Result<Epoch, StoreDown> {
        let answer = self.do_new_epoch();
        self.or_down(answer)
    }

    fn do_new_epoch(&mut self) -> Result<Epoch> {
        let epoch = Epoch(self.read.find_epoch()?.0.0 + 1);
        self.run(
            "INSERT INTO epoch (no, timeline, is_open, begun_at) VALUES (?1, 'file', ?2, ?3)",
            // Only the first epoch has nothing to wait for.
            params![stored_number(epoch.0), epoch == Epoch(1), self.now.as_millis()],
        )?;
        self.set_epoch(epoch);
        // A restored file may be used from another data directory.
        self.run("DELETE FROM setting WHERE name = ?1", [OWNER_SETTING])?;
        Ok(epoch)
    }
}
