//! The loop: keys and reports in, the screen out. However it ends, the terminal is restored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, KeyEvent};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::DefaultTerminal;

use crate::app::App;
use crate::options::Options;
use crate::screen::{self, theme::Theme};
use dq_watch::fleet::Fleet;
use dq_watch::read::Report;

enum Event {
    Key(KeyEvent),
    /// The terminal has another size, or must be drawn again.
    Redraw,
    Report(Box<Report>),
    /// The terminal is gone.
    HungUp,
}

/// While the terminal does not read (stopped, or slow), no more reports than this pile up.
const UNSEEN: usize = 100;

/// Redrawn without news, too, as ages on the screen grow.
const REDRAW: Duration = Duration::from_millis(500);

pub fn run(options: Options) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGINT,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    // Its panic hook restores the terminal before the message.
    let mut terminal = ratatui::try_init()?;
    let ended = watch(&mut terminal, options, &stop);
    ratatui::restore();
    ended
}

fn watch(terminal: &mut DefaultTerminal, options: Options, stop: &AtomicBool) -> io::Result<()> {
    let (sender, events) = sync_channel(UNSEEN);
    listen(sender.clone());
    let name = options.target.name();
    let mut app = App::new(
        &name,
        options.order,
        options.scope.interval,
        options.read_only,
    );
    let tell = move |report| drop(sender.send(Event::Report(Box::new(report))));
    let mut fleet = Fleet::start(options.target, options.scope, tell);
    let theme = Theme {
        color: options.color,
    };
    while !app.quit && !stop.load(Ordering::Relaxed) {
        let size = terminal.size()?;
        app.size = (size.width, size.height);
        app.settle();
        for out in app.servers.outbox.drain(..) {
            fleet.carry_out(out);
        }
        // Terminals that support synchronized updates show the picture as a whole.
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        terminal.draw(|frame| screen::draw(frame, &app, theme))?;
        execute!(io::stdout(), EndSynchronizedUpdate)?;
        take(&mut app, &events);
    }
    Ok(())
}

/// Waits for one event, and takes those that came with it: one drawing shows them all.
fn take(app: &mut App, events: &Receiver<Event>) {
    let mut event = match events.recv_timeout(REDRAW) {
        Ok(event) => event,
        Err(RecvTimeoutError::Timeout) => return,
        Err(RecvTimeoutError::Disconnected) => return app.quit = true,
    };
    loop {
        match event {
            Event::Key(key) => app.key(key),
            Event::Report(report) => app.hear(*report),
            Event::Redraw => {}
            Event::HungUp => app.quit = true,
        }
        match events.try_recv() {
            Ok(next) => event = next,
            Err(_) => return,
        }
    }
}

fn listen(sender: SyncSender<Event>) {
    thread::spawn(move || loop {
        let event = match event::read() {
            Ok(event::Event::Key(key)) => Event::Key(key),
            Ok(_) => Event::Redraw,
            Err(_) => {
                let _ = sender.send(Event::HungUp);
                return;
            }
        };
        if sender.send(event).is_err() {
            return;
        }
    });
}
