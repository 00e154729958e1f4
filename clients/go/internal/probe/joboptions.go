// Code generated from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

package main

import dq "github.com/redis-dq/redis-dq/clients/go"

type saidArgs struct {
	Priority *int64
	TTR      *int64
	Attempts *int64
	TTL      *int64
	Group    string
	Keep     *int64
	Cost     *int64
	Backoff  []int64
	Label    string
}

func (a saidArgs) say(options *dq.JobOptions) {
	if a.Priority != nil {
		options.Priority = int(*a.Priority)
	}
	if a.TTR != nil {
		options.TTR = duration(*a.TTR)
	}
	if a.Attempts != nil {
		options.Attempts = int(*a.Attempts)
		if *a.Attempts == 0 {
			options.Attempts = -1
		}
	}
	if a.TTL != nil {
		options.TTL = duration(*a.TTL)
	}
	options.Group = a.Group
	if a.Keep != nil {
		options.Keep = duration(*a.Keep)
		if *a.Keep == 0 {
			options.Keep = -1
		}
	}
	if a.Cost != nil {
		options.Cost = int(*a.Cost)
	}
	for _, ms := range a.Backoff {
		options.Backoff = append(options.Backoff, duration(ms))
	}
	options.Label = a.Label
}
