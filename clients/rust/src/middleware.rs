//! Middleware around handlers, as layers of tower or as functions.

use crate::error::{BoxError, Error};
use crate::job::Job;
use crate::result::encode;
use serde::Serialize;
use std::fmt;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

type Running = Pin<Box<dyn Future<Output = Result<Returned, BoxError>> + Send>>;

/// The request of a handler's service: one job, or those of a batch.
#[derive(Debug, Clone)]
pub struct Call(pub(crate) Vec<Job>);

impl Call {
    /// The jobs, undecoded.
    pub fn jobs(&self) -> &[Job] {
        &self.0
    }
}

/// The response of a handler's service: the job's result, encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Returned(pub(crate) Option<Vec<u8>>);

impl Returned {
    /// No result.
    pub fn nothing() -> Self {
        Returned(None)
    }

    /// With this result.
    pub fn of<R: Serialize + ?Sized>(result: &R) -> Result<Self, Error> {
        Ok(Returned(encode(result)?))
    }

    /// The encoded result.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}

/// What a middleware wraps: the other middleware and the handler. A [`Service`].
#[derive(Clone)]
pub struct Next(Arc<dyn Fn(Call) -> Running + Send + Sync>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

impl Next {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Returned, BoxError>> + Send + 'static,
    {
        Next(Arc::new(move |call| Box::pin(function(call))))
    }

    /// Calls the handler, through the remaining middleware.
    pub fn run(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<Returned, BoxError>> + Send + 'static {
        (self.0)(call)
    }

    pub(crate) fn around<F, Fut>(self, function: &Arc<F>) -> Self
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Returned, BoxError>> + Send + 'static,
    {
        let function = function.clone();
        Next::new(move |call| function(call, self.clone()))
    }

    pub(crate) fn layer<L>(self, layer: &L) -> Self
    where
        L: Layer<Next>,
        L::Service: Service<Call, Response = Returned> + Clone + Send + Sync + 'static,
        <L::Service as Service<Call>>::Future: Send,
        <L::Service as Service<Call>>::Error: Into<BoxError>,
    {
        let service = layer.layer(self);
        Next::new(move |call| {
            let mut service = service.clone();
            async move {
                poll_fn(|context| service.poll_ready(context))
                    .await
                    .map_err(Into::into)?;
                service.call(call).await.map_err(Into::into)
            }
        })
    }
}

impl Service<Call> for Next {
    type Response = Returned;
    type Error = BoxError;
    type Future = Running;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Running {
        (self.0)(call)
    }
}
