//! The effect of each key.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::prompt::{Kind, Prompt};
use super::view::{QueueView, View};
use super::{App, Out};
use dq_watch::model::column::{Column, Tone, ALL};
use dq_watch::model::stats::Jobs;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::detail::State;
use dq_watch::read::Request;

impl App {
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => self.quit = true,
            KeyCode::Char(_) if control => {}
            code if self.help => self.help = !is_end_of_help(code),
            code if self.prompt.is_some() => self.key_of_prompt(code),
            KeyCode::Char('q') => self.quit = true,
            KeyCode::Char('?' | 'h') => self.help = true,
            code => match self.view {
                View::Table => self.key_of_table(code),
                View::Queue(_) => self.key_of_queue(code),
            },
        }
        self.settle();
    }

    fn key_of_table(&mut self, code: KeyCode) {
        let page = self.table_rows().max(1) as isize;
        match code {
            KeyCode::Up => self.move_selection(-1),
            KeyCode::Down => self.move_selection(1),
            KeyCode::PageUp => self.move_selection(-page),
            KeyCode::PageDown => self.move_selection(page),
            KeyCode::Home => self.move_selection(isize::MIN / 2),
            KeyCode::End => self.move_selection(isize::MAX / 2),
            KeyCode::Left | KeyCode::Char('<') => self.sort_by(ALL.len() - 1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Char('r') => self.order.reversed = !self.order.reversed,
            KeyCode::Char('/') => self.prompt = Some(Prompt::filter(&self.order.filter)),
            KeyCode::Esc => self.order.filter.clear(),
            KeyCode::Enter => {
                if let Some(key) = self.selected.clone() {
                    self.chosen = true;
                    self.view = View::Queue(Box::new(QueueView::new(key)));
                }
            }
            other => self.key_of_acts(other),
        }
    }

    fn move_selection(&mut self, by: isize) {
        let rows = self.rows();
        let place = rows
            .iter()
            .position(|row| Some(&row.key) == self.selected.as_ref());
        let last = rows.len().saturating_sub(1);
        let to = place.unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = rows.get(to).map(|row| row.key.clone());
        self.chosen = to > 0;
    }

    /// Sorts by the column that is `by` places further right; left of the first is the order that begins with trouble.
    fn sort_by(&mut self, by: usize) {
        let orders: Vec<Option<Column>> = ALL
            .into_iter()
            .filter(|column| *column != Column::Trend) // as DLVR/s
            .map(Some)
            .chain([None])
            .collect();
        let place = orders.iter().position(|it| *it == self.order.column);
        self.order.column = orders[(place.unwrap_or(0) + by) % orders.len()];
    }

    fn key_of_queue(&mut self, code: KeyCode) {
        let (rows, width) = (self.job_rows(), usize::from(self.size.0));
        let Some(view) = self.queue_view_mut() else {
            return;
        };
        if let Some(job) = &mut view.job {
            match code {
                KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => view.job = None,
                KeyCode::Char('x') => (job.hex, job.scroll) = (!job.hex, 0),
                KeyCode::Up => job.scroll_to(job.scroll.saturating_sub(1), width),
                KeyCode::Down => job.scroll_to(job.scroll + 1, width),
                KeyCode::PageUp => job.scroll_to(job.scroll.saturating_sub(rows / 2), width),
                KeyCode::PageDown => job.scroll_to(job.scroll + rows / 2, width),
                KeyCode::Home => job.scroll = 0,
                KeyCode::End => job.scroll_to(usize::MAX, width),
                other => self.key_of_acts(other),
            }
            return;
        }
        match code {
            KeyCode::Esc | KeyCode::Backspace => self.view = View::Table,
            KeyCode::Tab | KeyCode::Right => view.open_tab(view.tab + 1),
            KeyCode::BackTab | KeyCode::Left => view.previous_tab(),
            KeyCode::Char(digit @ '1'..='8') => view.open_tab(digit as usize - '1' as usize),
            KeyCode::Up => view.select(view.selected.saturating_sub(1)),
            KeyCode::Down => view.select(view.selected + 1),
            // Of who works more is read than a screen has.
            KeyCode::PageDown if view.has_further(view.selected + 1) => {
                view.select(view.selected + rows);
            }
            KeyCode::PageUp if view.selected >= rows => view.select(view.selected - rows),
            KeyCode::PageDown => view.next_page(),
            KeyCode::PageUp => view.previous_page(),
            KeyCode::Home => view.first_page(),
            KeyCode::Enter => view.open_job(),
            other => self.key_of_acts(other),
        }
    }

    /// Lower case is about one job, upper case about all jobs; `p` about the queue.
    fn key_of_acts(&mut self, code: KeyCode) {
        let KeyCode::Char(letter) = code else {
            return;
        };
        if !"pPkKnsdg".contains(letter) {
            return;
        }
        if self.read_only {
            return self.say(
                "read-only: nothing can be changed (--read-only)",
                Tone::Warn,
            );
        }
        let Some(key) = self.subject() else {
            return;
        };
        match letter {
            'p' | 'P' | 'K' => self.ask_about_queue(letter, key),
            _ => self.ask_about_job(letter, key),
        }
    }

    fn ask_about_queue(&mut self, letter: char, key: QueueKey) {
        let row = self.servers.board.row(&key);
        let jobs = row
            .and_then(|row| row.stats.as_ref())
            .map_or(Jobs::default(), |stats| stats.jobs);
        let paused = row.is_some_and(|row| row.is_paused());
        let state = self.queue_view().and_then(QueueView::state);
        match (letter, jobs[State::Dead as usize]) {
            ('p', _) if paused => self.prompt = Some(Prompt::resume(key)),
            ('p', _) => self.prompt = Some(Prompt::pause(key)),
            ('K', 0) => self.say("this queue has no dead jobs", Tone::Plain),
            ('K', dead) => self.prompt = Some(Prompt::kick_dead(key, dead)),
            _ => {
                let count = state.map_or(jobs.iter().sum(), |state| jobs[state as usize]);
                let blocked = jobs[State::Blocked as usize] > 0;
                self.ask(Prompt::purge(key.clone(), state, count, blocked), key);
            }
        }
    }

    fn ask_about_job(&mut self, letter: char, key: QueueKey) {
        let view = self.queue_view();
        let job =
            view.and_then(|view| Some((view.job_id()?.to_vec(), view.job_state()?.to_owned())));
        let Some((id, state)) = job else {
            let why = match view.is_some_and(|view| view.job.is_some()) {
                true => "this job is not there",
                false => "no job is selected: open a queue and one of its tabs",
            };
            return self.say(why, Tone::Plain);
        };
        let at_work = view.and_then(QueueView::job_read);
        let given = at_work.and_then(|job| Prompt::give_back(key.clone(), job));
        let kicked = Prompt::kick(key.clone(), id.clone(), &state);
        let waits = state == State::Delayed.word() || state == State::Ready.word();
        match letter {
            'd' => {
                let row = self.servers.board.row(&key);
                let blocked = row.is_some_and(|row| row.jobs(State::Blocked as usize) > 0);
                self.ask(Prompt::delete(key.clone(), id, &state, blocked), key);
            }
            'k' if kicked.is_some() => self.prompt = kicked,
            'g' if given.is_some() => self.prompt = given,
            'g' => self.say(
                "what somebody works on is given back from the tab of who works (8), or from the open job",
                Tone::Plain,
            ),
            'n' if waits => self.prompt = Some(Prompt::run_now(key, id, &state)),
            's' if waits => self.prompt = Some(Prompt::reschedule(key, id, &state)),
            'k' => self.say(
                format!("only dead, done and blocked jobs are kicked; this one is {state}"),
                Tone::Plain,
            ),
            _ => self.say(
                format!("only delayed and ready jobs are moved; this one is {state}"),
                Tone::Plain,
            ),
        }
    }

    /// Shows a prompt, and asks the queue's node what it says who dies.
    fn ask(&mut self, prompt: Prompt, key: QueueKey) {
        let row = self.servers.board.row(&key);
        if let (Some((doomed, wanted)), Some(row)) = (&prompt.doomed, row) {
            let request = Request::Dying {
                doomed: doomed.clone(),
                wanted: Arc::downgrade(wanted),
                key,
            };
            let node = row.node.clone();
            self.servers.outbox.push(Out::To(node, request));
        }
        self.prompt = Some(prompt);
    }

    fn key_of_prompt(&mut self, code: KeyCode) {
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        match (code, &prompt.kind) {
            // Nothing is done before it is known who dies of it.
            (KeyCode::Char('y'), Kind::Confirm { .. }) | (KeyCode::Enter, _)
                if prompt.doomed.is_some() =>
            {
                self.prompt = Some(prompt);
            }
            (KeyCode::Char('y'), Kind::Confirm { key, act }) => self.send(key.clone(), act.clone()),
            (_, Kind::Confirm { .. }) => self.say("nothing was done", Tone::Plain),
            (KeyCode::Esc, Kind::Filter) => self.order.filter.clear(),
            (KeyCode::Esc, _) => self.say("nothing was done", Tone::Plain),
            (KeyCode::Enter, Kind::Filter) => {}
            (KeyCode::Enter, _) => match prompt.entered() {
                Ok((key, act)) => self.send(key, act),
                Err(why) => self.say(why, Tone::Warn),
            },
            _ => {
                match code {
                    KeyCode::Char(letter) => prompt.typed.push(letter),
                    KeyCode::Backspace => drop(prompt.typed.pop()),
                    _ => {}
                }
                if matches!(prompt.kind, Kind::Filter) {
                    self.order.filter = prompt.typed.clone();
                }
                self.prompt = Some(prompt);
            }
        }
    }

    fn send(&mut self, key: QueueKey, act: Act) {
        let Some(row) = self.servers.board.row(&key) else {
            return self.say("the queue is gone: nothing was done", Tone::Warn);
        };
        let node = row.node.clone();
        self.say("asked the server ...", Tone::Plain);
        self.servers
            .outbox
            .push(Out::To(node, Request::Act { key, act }));
    }
}

fn is_end_of_help(code: KeyCode) -> bool {
    matches!(code, KeyCode::Char(_) | KeyCode::Esc | KeyCode::Enter)
}
