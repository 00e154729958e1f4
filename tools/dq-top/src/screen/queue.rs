//! One queue: its name, the tabs, and the open tab.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;
use unicode_width::UnicodeWidthStr;

use super::theme::Theme;
use super::{job, jobs, overview};
use crate::app::view::QueueView;
use crate::app::App;
use dq_watch::model::column::Tone;
use dq_watch::model::stats::STATES;
use dq_watch::text::{escape, units};

/// The tab of the last state.
const LAST: usize = STATES.len();

pub fn draw(frame: &mut Frame, area: Rect, app: &App, view: &QueueView, theme: Theme) {
    let top = Rect { height: 2, ..area };
    let lines = vec![
        title(app, view, area.width as usize, theme),
        tabs(app, view, area.width.into(), theme),
    ];
    frame.render_widget(Paragraph::new(lines), top);
    let body = Rect {
        y: area.y + 2,
        height: area.height - 2,
        ..area
    };
    match (&view.job, view.state()) {
        (Some(job), _) => job::draw(frame, body, app, view, job, theme),
        (None, Some(_)) => jobs::draw(frame, body, app, view, theme),
        (None, None) => overview::draw(frame, body, app, view, theme),
    }
}

fn title<'a>(app: &App, view: &QueueView, width: usize, theme: Theme) -> Line<'a> {
    let row = app.servers.board.row(&view.key);
    let mut tail = String::new();
    let mut tone = Tone::Quiet;
    match row {
        None => tail.push_str("  gone"),
        Some(row) => {
            if app.servers.board.several_dbs() {
                tail.push_str(&format!("  db {}", view.key.db));
            }
            if app.servers.nodes.len() > 1 {
                tail.push_str(&format!("  on {}", escape::name(row.node.as_bytes())));
            }
            if row.gone {
                tail.push_str("  gone");
            }
            let paused = row.stats.as_ref().map_or(0, |stats| stats.paused);
            if paused != 0 {
                tone = Tone::Warn;
            }
            match paused {
                0 => {}
                -1 => tail.push_str("  paused until resumed"),
                until => {
                    let left = (until - app.now().server_ms).max(0) as u64;
                    tail.push_str(&format!("  paused for {}", units::millis(left)));
                }
            }
        }
    }
    let name = escape::fit(
        &escape::name(&view.key.name),
        width.saturating_sub(tail.len() + 2),
    );
    Line::from(vec![
        Span::raw(" "),
        Span::styled(name, theme.key()),
        Span::styled(tail, theme.tone(tone)),
    ])
}

/// The tabs with their keys and counts; on a narrow screen without the keys, without the last one unless it is open, or
/// without the counts.
fn tabs<'a>(app: &App, view: &QueueView, width: usize, theme: Theme) -> Line<'a> {
    let row = app.servers.board.row(&view.key);
    let titles = |keys: bool, counts: bool, last: bool| -> Vec<String> {
        let title = |(index, name): (usize, &str)| {
            let key = match keys {
                true => format!("{} ", index + 1),
                false => String::new(),
            };
            let count = match (index, row) {
                (1..=LAST, Some(row)) if counts => {
                    format!(" {}", units::count(row.jobs(index - 1)))
                }
                _ => String::new(),
            };
            format!(" {key}{name}{count} ")
        };
        let last = last.then_some("workers");
        let names = ["overview"].into_iter().chain(STATES).chain(last);
        names.enumerate().map(title).collect()
    };
    let fits = |all: &Vec<String>| all.iter().map(|it| it.width() + 1).sum::<usize>() <= width;
    let last = view.is_of_workers();
    let ways = [(true, true, true), (false, true, true), (false, true, last)];
    let mut ways = ways
        .map(|(keys, counts, last)| titles(keys, counts, last))
        .into_iter();
    let all = ways.find(fits);
    let mut spans = vec![Span::raw(" ")];
    for (index, title) in all
        .unwrap_or_else(|| titles(true, false, true))
        .into_iter()
        .enumerate()
    {
        let style = match index == view.tab {
            true => theme.bar(),
            false => theme.label(),
        };
        spans.extend([Span::styled(title, style), Span::raw(" ")]);
    }
    Line::from(spans)
}
