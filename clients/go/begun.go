package dq

import (
	"sync"
	"unique"
)

// begun has the jobs whose handlers run in this process, in any worker. A job that is delivered again meanwhile, as its
// lease expired unnoticed in a failover, is not started a second time.
var begun = runs{of: map[run]*delivery{}}

type runs struct {
	mu sync.Mutex
	of map[run]*delivery
}

type run struct {
	at unique.Handle[place]
	jobKey
}

// begin records that a job runs; it returns false if the job runs already.
func (r *runs) begin(d *delivery) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := run{d.link.at(), d.jobKey}
	if r.of[key] != nil {
		return false
	}
	r.of[key] = d
	return true
}

func (r *runs) end(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, run{d.link.at(), d.jobKey})
}

// other returns the delivery of the same job that runs, or nil.
func (r *runs) other(d *delivery) *delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[run{d.link.at(), d.jobKey}]
}
