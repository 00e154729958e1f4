package dq

// State is the state of a job.
type State string

// The states of jobs. All is for [Queue.Purge], and for [Queue.Len]: blocked, delayed, ready and reserved together.
const (
	Delayed  State = "delayed"
	Ready    State = "ready"
	Leased   State = "reserved"
	Dead     State = "dead"
	Blocked  State = "blocked"
	Done     State = "done"
	All      State = "all"
	AnyState State = ""
)

// Outcome is how a job ended; "" if it has not.
type Outcome string

// The outcomes of jobs. Unknown means that the job ended before, without being kept, or never existed.
const (
	OutcomeDone    Outcome = "done"
	OutcomeDead    Outcome = "dead"
	OutcomeDeleted Outcome = "deleted"
	OutcomeExpired Outcome = "expired"
	OutcomeUnknown Outcome = "unknown"
)

// IfExists says what happens if a job with this id exists.
type IfExists string

const (
	// Refuse does not add the new job (the default), so adding twice does no harm. A dead or done job is replaced.
	Refuse IfExists = ""
	// Replace replaces the job, in any state; without one, it adds the new job.
	Replace IfExists = "REPLACE"
	// OnlyReplace replaces the job, in any state; without one, nothing is added.
	OnlyReplace IfExists = "XX"
	// RunAgain is as Refuse, but while the job is reserved, the new one is kept, and runs when the current run is over.
	RunAgain IfExists = "NEXT"
)

// OnDead says what a job does if a job in its After dies.
type OnDead string

const (
	// OnDeadWait keeps the job waiting (the default), as the dead job may be kicked. If that is deleted, the job dies.
	OnDeadWait OnDead = "WAIT"
	// OnDeadRun runs the job; [Job.Results] says how the others ended.
	OnDeadRun OnDead = "RUN"
	// OnDeadDie lets the job die, too.
	OnDeadDie OnDead = "DIE"
)
