//! `dq mcp`: queues as tools for an assistant. It speaks the Model Context Protocol
//! (https://modelcontextprotocol.io) on standard input and output. See docs/server.md.

mod act;
mod answer;
mod read;
mod tools;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use dq_connect::arguments::{password_of_environment, ShownArgs};
use dq_watch::audit::Log;
use dq_watch::model::QueueKey;
use dq_watch::read::reach::Reach;
use dq_watch::text::escape;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;

use act::{Actions, ACTIONS};
use tools::Given;

#[derive(clap::Args)]
pub struct Args {
    /// Shows payloads, results and steps, too, the first 1024 bytes of each
    #[arg(long)]
    payloads: bool,
    /// The tools with which the assistant may change something
    #[arg(long, value_name = "TOOL,TOOL...", value_delimiter = ',', value_parser = ACTIONS, requires = "audit_log")]
    allow_actions: Vec<String>,
    /// Appends a line of JSON for each action
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// Serves the assistant that started it, until that closes the input.
pub fn run(args: &Args) -> Result<(), String> {
    let (target, scope) = args.shown.target(password_of_environment())?;
    let log = args.audit_log.as_deref().map(Log::open).transpose()?;
    let desk = Desk {
        reach: Reach::new(target, scope),
        actions: Actions::new(log),
        payloads: args.payloads,
    };
    serve(Mcp {
        tools: tools::all(&args.allow_actions)?.into(),
        desk: Arc::new(Mutex::new(desk)),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn serve(mcp: Mcp) -> Result<(), String> {
    let served = mcp.serve(stdio()).await;
    let served = served.map_err(|error| error.to_string())?;
    let ended = served.waiting().await;
    ended.map(|_| ()).map_err(|error| error.to_string())
}

/// What answers: one question at a time.
pub struct Desk {
    reach: Reach,
    actions: Actions,
    payloads: bool,
}

impl Desk {
    fn answer(&mut self, tool: &str, given: &Given) -> Result<Value, String> {
        match tool {
            "queues" => read::queues(self, given),
            "why" => read::why(self, given),
            "dead_jobs" => read::dead_jobs(self, given),
            "job" => read::job(self, given),
            "forecast" => read::forecast(self, given),
            _ => act::act(self, tool, given),
        }
    }

    /// The queue that is named, if it is one of those that the arguments let be seen.
    fn key(&self, given: &Given) -> Result<QueueKey, String> {
        self.reach.allowed(given.key(self.reach.db())?)
    }
}

struct Mcp {
    tools: Arc<[Tool]>,
    desk: Arc<Mutex<Desk>>,
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("dq", env!("CARGO_PKG_VERSION")))
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == asked.name) else {
            let name = escape::line(asked.name.as_bytes());
            return Ok(said(Err(format!(
                "there is no tool {name}, or it is not allowed"
            ))));
        };
        let (desk, tool) = (Arc::clone(&self.desk), tool.clone());
        let answer = tokio::task::spawn_blocking(move || {
            let given = Given::of(&tool, asked.arguments.unwrap_or_default())?;
            let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
            desk.answer(&tool.name, &given)
        });
        let answer = answer.await;
        Ok(said(answer.unwrap_or_else(|error| Err(error.to_string()))))
    }
}

fn said(answer: Result<Value, String>) -> CallToolResponse {
    let text = |text: String| vec![ContentBlock::text(text)];
    match answer {
        Ok(answer) => CallToolResult::success(text(answer.to_string())).into(),
        Err(error) => CallToolResult::error(text(error)).into(),
    }
}
