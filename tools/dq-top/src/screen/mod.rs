//! Draws what the monitor knows. Text from the server passes through `text::escape` only.

mod header;
mod job;
mod jobs;
mod overview;
#[cfg(test)]
mod picture;
mod popup;
mod queue;
mod table;
#[cfg(test)]
mod tests;
pub mod theme;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;
use unicode_width::UnicodeWidthStr;

use crate::app::view::View;
use crate::app::App;
use dq_watch::model::column::Tone;
use dq_watch::text::escape;
use theme::Theme;

/// On a smaller screen there is no room for anything useful.
const LEAST: (u16, u16) = (40, 10);

pub fn draw(frame: &mut Frame, app: &App, theme: Theme) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("dq top needs {} x {}", LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let body = Rect {
        height: area.height - 2,
        ..area
    };
    draw_view(frame, body, app, theme);
    draw_message(
        frame,
        Rect {
            y: area.height - 2,
            height: 1,
            ..area
        },
        app,
        theme,
    );
    draw_keys(
        frame,
        Rect {
            y: area.height - 1,
            height: 1,
            ..area
        },
        app,
        theme,
    );
    if app.help {
        popup::help(frame, area, app, theme);
    } else if let Some(prompt) = &app.prompt {
        popup::prompt(frame, area, prompt, theme);
    }
}

fn draw_view(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let below = |y: u16| Rect {
        y,
        height: area.height - y,
        ..area
    };
    match &app.view {
        View::Table => {
            header::draw(frame, Rect { height: 4, ..area }, app, theme);
            table::draw(frame, below(4), app, theme);
        }
        View::Queue(view) => {
            header::draw_bar(frame, Rect { height: 1, ..area }, app, theme);
            queue::draw(frame, below(1), app, view, theme);
        }
    }
    if is_stale(app) {
        theme.grey_out(frame, below(1));
    }
    if matches!(app.view, View::Table) && app.rows().is_empty() {
        table::draw_why_empty(frame, below(4), app, theme);
    }
}

/// Whether all figures on the screen may be outdated. (In a cluster each queue's line shows whether
/// its own are.)
fn is_stale(app: &App) -> bool {
    match &app.view {
        View::Table => app
            .servers
            .nodes
            .keys()
            .all(|node| app.servers.is_down(node)),
        View::Queue(view) => app
            .servers
            .board
            .row(&view.key)
            .is_none_or(|row| row.gone || app.servers.is_down(&row.node)),
    }
}

/// What is wrong, if anything.
fn trouble(app: &App) -> Option<(String, Tone)> {
    app.servers
        .nodes
        .iter()
        .find_map(|(name, node)| match (&node.down, &node.trouble) {
            (Some(why), _) => Some((
                format!("No connection to {name}: {why}. Trying again ..."),
                Tone::Bad,
            )),
            (None, trouble) if !trouble.is_empty() => Some((trouble.clone(), Tone::Warn)),
            _ => None,
        })
}

/// The last message, else what is wrong, unless the table's place shows that already.
fn draw_message(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let told_above = matches!(app.view, View::Table) && app.rows().is_empty();
    let trouble = trouble(app).filter(|_| !told_above);
    let message = app
        .current_message()
        .map(|message| (message.text.clone(), message.tone));
    let Some((text, tone)) = message.or(trouble) else {
        return;
    };
    // Text from a server or a library is escaped like that of a job.
    let text = escape::fit(&escape::line(text.as_bytes()), area.width as usize - 1);
    let line = Line::from(vec![Span::raw(" "), Span::styled(text, theme.tone(tone))]);
    frame.render_widget(Paragraph::new(line), area);
}

fn draw_keys(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let mut keys: Vec<(&str, &str)> = match &app.view {
        View::Table => vec![
            ("Enter", "open"),
            ("←→", "sort"),
            ("r", "reverse"),
            ("/", "filter"),
        ],
        View::Queue(view) if view.job.is_some() => {
            vec![("Esc", "back"), ("x", "hex"), ("↑↓", "scroll")]
        }
        View::Queue(view) if view.tab == 0 => vec![("Esc", "back"), ("Tab", "jobs")],
        View::Queue(_) => vec![("Esc", "back"), ("PgDn", "page"), ("Enter", "job")],
    };
    let acts: &[(&str, &str)] = match &app.view {
        _ if app.read_only => &[],
        View::Table => &[("p", "pause"), ("K", "kick"), ("P", "purge")],
        View::Queue(view) => match view.job_state() {
            _ if view.tab == 0 => &[("p", "pause"), ("K", "kick dead"), ("P", "purge")],
            Some("dead") => &[("k", "kick"), ("K", "all"), ("d", "delete"), ("P", "purge")],
            Some("done" | "blocked") => &[("k", "kick"), ("d", "delete"), ("P", "purge")],
            Some("reserved") if view.job_read().is_some() => {
                &[("g", "give back"), ("d", "delete"), ("P", "purge")]
            }
            Some("reserved") => &[("d", "delete"), ("P", "purge")],
            None => &[],
            Some(_) => &[
                ("n", "now"),
                ("s", "delay"),
                ("d", "delete"),
                ("P", "purge"),
            ],
        },
    };
    keys.extend(acts);
    keys.extend([("?", "help"), ("q", "quit")]);
    let words: usize = keys
        .iter()
        .map(|(key, what)| key.width() + what.width())
        .sum();
    let gap = match words + 3 * keys.len() <= area.width.into() {
        true => "  ",
        false => " ",
    };
    let mut spans = vec![Span::raw(" ")];
    for (key, what) in keys {
        spans.push(Span::styled(key, theme.key()));
        spans.push(Span::styled(format!(" {what}{gap}"), theme.label()));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}
