//! The current view: the table, a queue, or a job.

use std::collections::HashMap;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{
    by_client, Cut, Detail, Found, Job, Page, Part, PeekedJob, Settings, State, AT_WORK, STATES,
};
use dq_watch::text::escape;

/// The tab of who works, after those of the states.
const WORKERS: usize = STATES.len() + 1;

pub enum View {
    Table,
    Queue(Box<QueueView>),
}

pub struct QueueView {
    pub key: QueueKey,
    /// 0 is the overview, then the states in their order, then who works.
    pub tab: usize,
    pub settings: Option<Settings>,
    /// The pages from the first to the one shown.
    pages: Vec<Page>,
    pub jobs: Option<Vec<PeekedJob>>,
    /// What was read of those that are dead, or at work, by id.
    pub read: HashMap<Vec<u8>, Job>,
    /// The next page, if there is one.
    pub more: Option<Page>,
    pub selected: usize,
    pub job: Option<JobView>,
    /// The server's refusal.
    pub refusal: Option<String>,
}

pub struct JobView {
    pub id: Vec<u8>,
    /// None until it is read.
    pub job: Option<Job>,
    pub gone: bool,
    pub hex: bool,
    pub scroll: usize,
}

impl JobView {
    /// The payload, and the result of a done job, as lines for a screen of this width.
    pub fn body(&self, width: usize) -> [Vec<String>; 2] {
        let width = width.saturating_sub(2);
        let lines = |cut: &Cut| match self.hex {
            true => escape::hex(&cut.bytes, width),
            false => escape::lines(&cut.bytes, width),
        };
        let Some(job) = &self.job else {
            return Default::default();
        };
        let result = job.result.as_ref().map(lines);
        [lines(&job.payload), result.unwrap_or_default()]
    }

    /// Scrolls, at most to the last line; the result has a title above it.
    pub fn scroll_to(&mut self, line: usize, width: usize) {
        let lines = self.body(width).iter().map(Vec::len).sum::<usize>();
        self.scroll = line.min(lines);
    }
}

impl QueueView {
    pub fn new(key: QueueKey) -> QueueView {
        QueueView {
            key,
            tab: 0,
            settings: None,
            pages: vec![Page::default()],
            jobs: None,
            read: HashMap::new(),
            more: None,
            selected: 0,
            job: None,
            refusal: None,
        }
    }

    /// None in the overview.
    pub fn state(&self) -> Option<State> {
        match self.is_of_workers() {
            true => Some(State::Reserved),
            false => self.tab.checked_sub(1).map(|index| STATES[index]),
        }
    }

    /// Whether the tab of who works is open.
    pub fn is_of_workers(&self) -> bool {
        self.tab == WORKERS
    }

    pub fn page_number(&self) -> usize {
        self.pages.len()
    }

    pub fn page(&self) -> Page {
        self.pages.last().copied().unwrap_or_default()
    }

    pub fn detail(&self, count: usize) -> Option<Detail> {
        let part = match (&self.job, self.state()) {
            (Some(view), _) => Part::Job(view.id.clone()),
            (None, None) => Part::Settings,
            (None, Some(state)) => Part::Jobs {
                state,
                page: self.page(),
                count: if self.is_of_workers() { AT_WORK } else { count },
                read: self.is_of_workers() || state == State::Dead,
            },
        };
        Some(Detail {
            key: self.key.clone(),
            part,
        })
    }

    pub fn open_tab(&mut self, tab: usize) {
        self.tab = tab % (WORKERS + 1);
        self.pages = vec![Page::default()];
        self.job = None;
        self.forget_jobs();
    }

    fn forget_jobs(&mut self) {
        (self.jobs, self.more, self.selected, self.refusal) = (None, None, 0, None);
    }

    pub fn previous_tab(&mut self) {
        self.open_tab(self.tab + WORKERS);
    }

    pub fn next_page(&mut self) {
        if let Some(page) = self.more {
            self.pages.push(page);
            self.forget_jobs();
        }
    }

    pub fn previous_page(&mut self) {
        if self.pages.len() > 1 {
            self.pages.pop();
            self.forget_jobs();
        }
    }

    pub fn first_page(&mut self) {
        self.pages.truncate(1);
        self.forget_jobs();
    }

    /// The id of the job that is open or selected.
    pub fn job_id(&self) -> Option<&[u8]> {
        match &self.job {
            Some(view) => Some(&view.id),
            None => self
                .jobs
                .as_ref()?
                .get(self.selected)
                .map(|job| job.id.as_slice()),
        }
    }

    /// Its state, as far as known.
    pub fn job_state(&self) -> Option<&str> {
        match &self.job {
            Some(view) => view.job.as_ref().map(|job| job.state.as_str()),
            None => self.state().map(State::word),
        }
    }

    /// The job that is open or selected, as far as it was read.
    pub fn job_read(&self) -> Option<&Job> {
        match &self.job {
            Some(view) => view.job.as_ref(),
            None => self.read.get(self.job_id()?),
        }
    }

    /// Whether a job of who works stands there or further down.
    pub fn has_further(&self, place: usize) -> bool {
        self.is_of_workers() && place < self.jobs.as_ref().map_or(0, Vec::len)
    }

    pub fn select(&mut self, place: usize) {
        let count = self.jobs.as_ref().map_or(0, Vec::len);
        self.selected = place.min(count.saturating_sub(1));
    }

    pub fn open_job(&mut self) {
        self.job = self.job_id().map(|id| JobView {
            id: id.to_vec(),
            job: None,
            gone: false,
            hex: false,
            scroll: 0,
        });
    }

    /// Takes the reply to `detail(count)`; a reply to an earlier question is ignored.
    pub fn take(&mut self, detail: &Detail, found: Found) {
        let Part::Jobs { state, count, .. } = detail.part else {
            return self.take_other(found);
        };
        let (mut jobs, mut read) = match found {
            Found::Jobs(jobs) => (jobs, HashMap::new()),
            Found::Read(jobs, read) => (jobs, read),
            other => return self.take_other(other),
        };
        self.more = self.page().next(state, &jobs, count);
        if self.is_of_workers() {
            let by_id = |(peeked, job): (PeekedJob, Job)| (peeked, (job.id.clone(), job));
            (jobs, read) = by_client(jobs, &mut read).into_iter().map(by_id).unzip();
        }
        // The selection stays with its job as long as the job is on the page.
        let id = self.job_id().map(<[u8]>::to_vec);
        let place = id.and_then(|id| jobs.iter().position(|job| job.id == id));
        (self.jobs, self.read) = (Some(jobs), read);
        self.select(place.unwrap_or(self.selected));
        self.refusal = None;
    }

    fn take_other(&mut self, found: Found) {
        self.refusal = None;
        match (found, &mut self.job) {
            (Found::Refused(error), _) => self.refusal = Some(error),
            (Found::Settings(settings), _) => self.settings = Some(*settings),
            (Found::Job(job), Some(view)) => (view.job, view.gone) = (Some(*job), false),
            (Found::Nothing, Some(view)) => view.gone = true,
            (Found::Nothing, None) => self.settings = None,
            (Found::Job(_) | Found::Jobs(_) | Found::Read(..), _) => {}
        }
    }
}
