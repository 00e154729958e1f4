//! The overview of one queue: totals and rates, settings, lateness, and the course of the rates.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use ratatui::Frame;

use super::theme::Theme;
use crate::app::view::QueueView;
use crate::app::App;
use dq_watch::model::column::{late, oldest, Tone};
use dq_watch::model::lateness::Histogram;
use dq_watch::model::row::Row;
use dq_watch::model::stats::{Stats, TOTALS};
use dq_watch::read::detail::Settings;
use dq_watch::text::{escape, units};

pub fn draw(frame: &mut Frame, area: Rect, app: &App, view: &QueueView, theme: Theme) {
    let row = app.servers.board.row(&view.key);
    let Some((row, stats)) = row.and_then(|row| Some((row, row.stats.as_ref()?))) else {
        let refusal = row
            .and_then(|row| row.refusal.clone())
            .or(view.refusal.clone());
        let text = refusal.unwrap_or_else(|| "There are no figures for this queue.".to_owned());
        let text = format!(" {}", escape::line(text.as_bytes()));
        frame.render_widget(Paragraph::new(text).style(theme.tone(Tone::Warn)), area);
        return;
    };
    let area = match &view.settings.as_ref().and_then(|it| it.why.as_ref()) {
        Some(why) => {
            let text = format!(" {}", row.explained(why).line(app.now().server_ms));
            let text = escape::fit(&text, area.width.into());
            let [line, rest] =
                Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
            frame.render_widget(Paragraph::new(text).style(theme.tone(Tone::Note)), line);
            rest
        }
        None => area,
    };
    let columns = [
        totals_list(row, stats, theme),
        now_list(row, stats, app, theme),
        settings_list(view, stats, theme),
    ];
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0) as u16;
    let [lists, charts] =
        Layout::vertical([Constraint::Length(longest), Constraint::Fill(1)]).areas(area);
    let places: [Rect; 3] = Layout::horizontal([
        Constraint::Length(30),
        Constraint::Length(25),
        Constraint::Fill(1),
    ])
    .areas(lists);
    for (lines, place) in columns.into_iter().zip(places) {
        frame.render_widget(Paragraph::new(lines), place);
    }
    let [lateness, rates] = Layout::horizontal([
        Constraint::Length(histogram_width(area.width)),
        Constraint::Fill(1),
    ])
    .areas(charts);
    draw_lateness(frame, lateness, stats, theme);
    draw_rates(frame, rates, row, theme);
}

fn entry<'a>(label: &str, width: usize, text: String, tone: Tone, theme: Theme) -> Line<'a> {
    Line::from(vec![
        Span::styled(format!(" {label:<width$} "), theme.label()),
        Span::styled(text, theme.tone(tone)),
    ])
}

fn totals_list<'a>(row: &Row, stats: &Stats, theme: Theme) -> Vec<Line<'a>> {
    let title = format!(" {:<10} {:>8} {:>7}", "TOTALS", "", "PER s");
    let mut lines = vec![Line::styled(title, theme.title())];
    for (index, name) in TOTALS.iter().enumerate() {
        let (total, rate) = (stats.totals[index], row.rates[index]);
        let tone = match (*name, rate > 0.0) {
            (_, false) => Tone::Plain,
            ("died", true) => Tone::Bad,
            ("nacked" | "timed-out", true) => Tone::Warn,
            (_, true) => Tone::Good,
        };
        let text = format!("{:>8} {:>7}", units::count(total), units::rate(rate));
        lines.push(entry(name, 10, text, tone, theme));
    }
    lines
}

fn now_list<'a>(row: &Row, stats: &Stats, app: &App, theme: Theme) -> Vec<Line<'a>> {
    let now = app.now();
    let mean = match stats.lateness_count {
        0 => None,
        count => Some(stats.lateness_sum_us / count),
    };
    let us = |us: Option<u64>| us.map_or("-".to_owned(), units::micros);
    let max = (stats.lateness_count > 0).then_some(stats.lateness_max_us);
    // An instant that was in the future when it was read may have come by now.
    let until = |due: i64| units::relative(due.max(now.server_ms), now.server_ms);
    let next = stats.next_due.map_or("-".to_owned(), until);
    let (p50, p50_tone) = late(row.percentile(0.50, now.here));
    let (p99, p99_tone) = late(row.percentile(0.99, now.here));
    let (old, old_tone) = oldest(stats.oldest_ready_ms);
    let line = |label: &str, text: String, tone: Tone| entry(label, 12, text, tone, theme);
    let mut lines = vec![
        Line::styled(" NOW", theme.title()),
        line("next due", next, Tone::Note),
        line("oldest ready", old, old_tone),
        line("waiting", units::count(stats.waiting_clients), Tone::Plain),
        line("recurring", units::count(stats.recurring), Tone::Plain),
        line("groups", units::count(stats.groups), Tone::Plain),
    ];
    if stats.done_bytes > 0 {
        let bytes = units::bytes(stats.done_bytes);
        lines.push(line("done bytes", bytes, Tone::Plain));
    }
    lines.extend([
        line("late p50", p50, p50_tone),
        line("late p99", p99, p99_tone),
        Line::styled(" SINCE IT CAME", theme.title()),
        line("late mean", us(mean), Tone::Plain),
        line("late max", us(max), Tone::Plain),
    ]);
    lines
}

fn settings_list<'a>(view: &QueueView, stats: &Stats, theme: Theme) -> Vec<Line<'a>> {
    let mut lines = vec![Line::styled(" SETTINGS", theme.title())];
    if let Some(refusal) = &view.refusal {
        let text = format!(" {}", escape::line(refusal.as_bytes()));
        lines.push(Line::styled(text, theme.tone(Tone::Warn)));
    }
    let Some(settings) = &view.settings else {
        return lines;
    };
    for (label, value) in named(settings, stats) {
        let tone = if value.is_some() {
            Tone::Plain
        } else {
            Tone::Quiet
        };
        lines.push(entry(
            label,
            11,
            value.unwrap_or_else(|| "-".to_owned()),
            tone,
            theme,
        ));
    }
    lines
}

/// None: no such limit. Limits of groups and done jobs are only shown if they are set.
fn named(settings: &Settings, stats: &Stats) -> Vec<(&'static str, Option<String>)> {
    let number = |number: u64| (number > 0).then(|| units::count(number));
    let millis = |ms: u64| (ms > 0).then(|| units::millis(ms));
    let steps: Vec<String> = settings
        .backoff_ms
        .iter()
        .take(8)
        .map(|&ms| units::millis(ms))
        .collect();
    let more = if settings.backoff_ms.len() > 8 {
        " ..."
    } else {
        ""
    };
    let rate = |(jobs, window): (u64, u64)| {
        (jobs > 0).then(|| format!("{jobs} in {}", units::millis(window)))
    };
    let mut all = vec![
        ("ttr", millis(settings.ttr_ms)),
        ("attempts", number(settings.attempts)),
        (
            "backoff",
            (!steps.is_empty()).then(|| steps.join(" ") + more),
        ),
        ("maxlen", number(settings.maxlen)),
        ("deadlen", number(settings.deadlen)),
        ("dedupe", millis(settings.dedupe_ms)),
        ("maxreserved", number(settings.maxreserved)),
        ("rate", rate(settings.rate)),
    ];
    let (most, _) = settings.rate;
    let used = (most > 0).then(|| format!("{} of {most}", stats.rate_used));
    let newer = [
        ("rate used", used),
        ("groupmax", number(settings.groupmax)),
        ("grouprate", rate(settings.grouprate)),
        ("groupfifo", settings.groupfifo.then(|| "on".to_owned())),
        ("donelen", number(settings.donelen)),
        ("donettl", millis(settings.donettl_ms)),
        (
            "donebytes",
            (settings.donebytes > 0).then(|| units::bytes(settings.donebytes)),
        ),
    ];
    all.extend(newer.into_iter().filter(|(_, value)| value.is_some()));
    all
}

/// Two columns for each bucket, or three if there is room.
fn histogram_width(width: u16) -> u16 {
    match width {
        0..70 => width,
        70..130 => 2 * 28 + 2,
        _ => 3 * 28 + 2,
    }
}

/// All deliveries since the queue came to this server, by how late they were.
fn draw_lateness(frame: &mut Frame, area: Rect, stats: &Stats, theme: Theme) {
    let histogram = Histogram::between(&[], &stats.lateness);
    let buckets = &histogram.buckets;
    let per_bucket = (usize::from(area.width).saturating_sub(2) / buckets.len().max(1)).max(1);
    let count = histogram.count();
    let what = if count == 1 { "delivery" } else { "deliveries" };
    let title = format!(" LATENESS of {} {what}", units::count(count));
    let mut lines = vec![Line::styled(title, theme.title())];
    let height = usize::from(area.height).saturating_sub(2);
    let largest = buckets
        .iter()
        .map(|&(_, count)| count)
        .max()
        .unwrap_or(0)
        .max(1);
    for level in (0..height).rev() {
        let mut spans = vec![Span::raw(" ")];
        for &(bound, count) in buckets {
            let eighths = (count as f64 / largest as f64 * (height * 8) as f64).ceil() as usize;
            let bar = units::bar(eighths.saturating_sub(level * 8));
            let (_, tone) = late(Some(bound.map_or(
                dq_watch::model::lateness::Late::Over(0),
                dq_watch::model::lateness::Late::AtMost,
            )));
            let text: String = std::iter::repeat_n(bar, (per_bucket - 1).max(1)).collect();
            spans.push(Span::styled(
                escape::pad(&text, per_bucket),
                theme.tone(tone),
            ));
        }
        lines.push(Line::from(spans));
    }
    lines.push(Line::styled(axis(buckets, per_bucket), theme.label()));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The bound of every third bucket, below it; the last bucket has none.
fn axis(buckets: &[(Option<u64>, u64)], per_bucket: usize) -> String {
    let labels = buckets.chunks(3).map(|chunk| {
        let text = chunk[0].0.map_or(">".to_owned(), units::micros);
        escape::pad(&text, chunk.len() * per_bucket)
    });
    format!(" {}", labels.collect::<String>())
}

fn draw_rates(frame: &mut Frame, area: Rect, row: &Row, theme: Theme) {
    let charts = [
        ("ADDED", &row.history.added, Tone::Note),
        ("DELIVERED", &row.history.delivered, Tone::Good),
        ("ACKED", &row.history.acked, Tone::Plain),
    ];
    let areas: [Rect; 3] = Layout::vertical([Constraint::Fill(1); 3]).areas(area);
    for ((name, series, tone), area) in charts.into_iter().zip(areas) {
        let values = series.values();
        let shown = &values[values.len().saturating_sub(usize::from(area.width))..];
        let largest = shown.iter().copied().fold(0.0, f64::max);
        let last = values.last().copied().unwrap_or(0.0);
        let most = match area.width {
            0..32 => String::new(),
            _ => format!(", most {}", units::rate(largest)),
        };
        let rate = format!(" {}/s{most}", units::rate(last));
        let title = Line::from(vec![
            Span::styled(name, theme.title()),
            Span::styled(rate, theme.label()),
        ]);
        frame.render_widget(
            Paragraph::new(title),
            Rect {
                height: area.height.min(1),
                ..area
            },
        );
        let below = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        };
        // The widget takes integers: in thousandths no visible difference is lost.
        let data: Vec<u64> = shown.iter().map(|rate| (rate * 1000.0) as u64).collect();
        let lead = usize::from(area.width).saturating_sub(data.len());
        let data: Vec<u64> = std::iter::repeat_n(0, lead).chain(data).collect();
        frame.render_widget(
            Sparkline::default().data(data).style(theme.tone(tone)),
            below,
        );
    }
}
