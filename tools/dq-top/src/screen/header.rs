//! The four lines at the top: the server, jobs by state, rates, punctuality.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;
use unicode_width::UnicodeWidthStr;

use super::theme::{labelled, unless_zero, Theme};
use crate::app::App;
use dq_watch::model::column::{late, Tone};
use dq_watch::model::lateness::Late;
use dq_watch::model::overall::Overall;
use dq_watch::model::stats::{ACKED, ADDED, DELIVERED, DIED, NACKED, STATES, TIMED_OUT};
use dq_watch::text::{escape, units};

pub fn draw(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let overall = app.servers.overall();
    let lines = [
        bar(app, &overall, area.width, theme),
        jobs(&overall, area.width, theme),
        rates(&overall, area.width, theme),
        punctuality(app, &overall, area.width, theme),
    ];
    frame.render_widget(Paragraph::new(lines.to_vec()), area);
}

pub fn draw_bar(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let line = bar(app, &app.servers.overall(), area.width, theme);
    frame.render_widget(Paragraph::new(line), area);
}

/// The server's name on the left, its state on the right; what does not fit is left out from the
/// middle.
fn bar<'a>(app: &App, overall: &Overall, width: u16, theme: Theme) -> Line<'a> {
    let width = width as usize;
    let first = app.servers.nodes.iter().next();
    let server = first
        .and_then(|(_, node)| node.figures.as_ref())
        .map(|figures| &figures.info);
    let mut left = match (app.servers.nodes.len(), first) {
        (1, Some((name, _))) => format!(" dq top  {}", escape::name(name.as_bytes())),
        _ => {
            let masters = app
                .servers
                .nodes
                .values()
                .filter(|node| node.counts())
                .count();
            format!(" dq top  cluster of {masters}")
        }
    };
    let mut right = String::new();
    if app
        .servers
        .nodes
        .keys()
        .all(|node| app.servers.is_down(node))
    {
        right.push_str("no connection  ");
    } else if let Some(info) = server {
        left.push_str(&format!("  {}", info.version));
        if app.servers.nodes.len() == 1 {
            left.push_str(&format!(" {}", info.role.replace("slave", "replica")));
        }
        let limit = match overall.max_memory {
            0 => String::new(),
            limit => format!("/{}", units::bytes(limit)),
        };
        let parts = [
            format!("up {}", units::millis(overall.uptime.as_millis() as u64)),
            format!("mem {}{limit}", units::bytes(overall.memory)),
            format!("{} ops/s", units::count(overall.ops_per_s)),
            format!("{} clients", units::count(overall.clients)),
        ];
        for part in parts {
            if left.width() + right.width() + part.width() + 5 <= width {
                right.push_str(&part);
                right.push_str("  ");
            }
        }
    }
    let right = escape::line(right.as_bytes());
    let room = width.saturating_sub(right.width());
    let left = escape::pad(&escape::line(left.as_bytes()), room);
    Line::styled(format!("{left}{right}"), theme.bar())
}

fn jobs<'a>(overall: &Overall, width: u16, theme: Theme) -> Line<'a> {
    let dq = &overall.dq;
    let mut parts = vec![("queues", units::count(dq.queues), Tone::Plain)];
    let mut part = |label, number: u64, tone| {
        parts.push((label, units::count(number), unless_zero(number, tone)));
    };
    for (state, number) in STATES.into_iter().zip(dq.jobs) {
        match state {
            "delayed" => part(state, number, Tone::Note),
            "ready" => part(state, number, Tone::Good),
            "dead" => part(state, number, Tone::Bad),
            // Most servers have none of these, and the line is full without them.
            "blocked" | "done" if number == 0 => {}
            _ => part(state, number, Tone::Plain),
        }
    }
    part("waiting", dq.waiting_clients, Tone::Plain);
    spread(&parts, width, theme)
}

fn rates<'a>(overall: &Overall, width: u16, theme: Theme) -> Line<'a> {
    let rate = |of: usize, tone: Tone| {
        let rate = overall.rates[of];
        (
            units::rate(rate),
            if rate > 0.0 { tone } else { Tone::Quiet },
        )
    };
    let named = [
        ("per s: added", rate(ADDED, Tone::Plain)),
        ("delivered", rate(DELIVERED, Tone::Plain)),
        ("acked", rate(ACKED, Tone::Plain)),
        ("nacked", rate(NACKED, Tone::Warn)),
        ("timed out", rate(TIMED_OUT, Tone::Warn)),
        ("died", rate(DIED, Tone::Bad)),
    ];
    spread(
        &named.map(|(label, (text, tone))| (label, text, tone)),
        width,
        theme,
    )
}

fn punctuality<'a>(app: &App, overall: &Overall, width: u16, theme: Theme) -> Line<'a> {
    let us = |us: Option<f64>| late(us.map(|us| Late::AtMost(us as u64)));
    let (mean, mean_tone) = us(overall.lateness_mean_us);
    let max = (overall.dq.lateness_count > 0).then_some(overall.dq.lateness_max_us as f64);
    let (max, _) = us(max);
    let fires = units::rate(overall.timer_fires_per_s);
    let timer_max =
        us((overall.dq.timer_fires > 0).then_some(overall.dq.timer_late_us_max as f64)).0;
    let mut line = spread(
        &[
            ("late mean", mean, mean_tone),
            ("late max", max, Tone::Plain),
            ("timer/s", fires, Tone::Plain),
            ("timer late max", timer_max, Tone::Plain),
        ],
        width,
        theme,
    );
    if !app.order.filter.is_empty() {
        let filter = escape::line(app.order.filter.as_bytes());
        line.spans
            .extend(labelled(theme, "filter", filter, Tone::Warn));
        line.spans.push(Span::raw("   "));
    }
    let searching = app
        .servers
        .nodes
        .values()
        .any(|node| node.figures.is_some() && !node.complete && node.trouble.is_empty());
    if searching {
        line.spans.push(Span::styled(
            "searching for queues ...",
            theme.tone(Tone::Note),
        ));
    }
    line
}

/// Closer together on a narrow screen.
fn spread<'a>(parts: &[(&str, String, Tone)], width: u16, theme: Theme) -> Line<'a> {
    let words = |(label, text, _): &(&str, String, Tone)| label.width() + 1 + text.width();
    let needed = parts.iter().map(words).sum::<usize>() + 3 * parts.len();
    let gap = match needed <= width.into() {
        true => "   ",
        false => "  ",
    };
    let mut spans = vec![Span::raw(" ")];
    for (label, text, tone) in parts {
        spans.extend(labelled(theme, label, text.clone(), *tone));
        spans.push(Span::raw(gap));
    }
    Line::from(spans)
}
