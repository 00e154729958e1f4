------------------------------- MODULE Trace -------------------------------
(* Follows the history of a queue that a server wrote. `dq audit --trace`     *)
(* makes the module Steps of it. Where Queue.tla does not allow the next step *)
(* there is nowhere to go, which the checker reports as a deadlock.           *)
EXTENDS Queue, Steps

VARIABLE at

all == <<vars, at>>

Happens(e) ==
    CASE e.what = "add"        -> Add(e.job, e.due, e.limit)
      [] e.what = "pop"        -> Pop(e.worker, e.job, e.token, e.deadline)
      [] e.what = "take"       -> Take(e.job)
      [] e.what = "touch"      -> Touch(e.worker, e.deadline)
      [] e.what = "lease ends" -> LeaseEnds(e.job)
      [] e.what = "ack"        -> Ack(e.worker)
      [] e.what = "nack"       -> GiveBack(e.worker, e.due, FALSE, e.attempts < master[e.job].attempts)
      [] e.what = "fail"       -> GiveBack(e.worker, now, TRUE, FALSE)
      [] e.what = "reschedule" -> Reschedule(e.job, e.due)
      [] e.what = "kick"       -> Kick(e.job, e.due)
      [] e.what = "gone"       -> Delete(e.job)
      [] e.what = "dies"       -> WorkerDies(e.worker)

(* What the effect says of the job afterwards. *)
AsItSays(e) == e.what # "dies" => /\ master'[e.job].state = e.state
                                  /\ e.what \in {"pop", "nack"} => master'[e.job].attempts = e.attempts

FollowStep == /\ wire = <<>>
              /\ at <= Len(Steps)
              /\ IF Steps[at].now > now
                 THEN Tick(Steps[at].now) /\ UNCHANGED at
                 ELSE /\ Steps[at].now = now
                      /\ Happens(Steps[at])
                      /\ AsItSays(Steps[at]) = TRUE
                      /\ at' = at + 1

TheEnd == wire = <<>> /\ at > Len(Steps) /\ UNCHANGED all

TraceSpec == Init /\ at = 1 /\ [][(Replicate /\ UNCHANGED at) \/ FollowStep \/ TheEnd]_all
=============================================================================
