package dq

import (
	"cmp"
	"time"
)

const (
	progressPause = time.Second
	progressBytes = 1024
)

// progress is the handler's latest report. It is guarded by link.mu.
type progress struct {
	text     string // not sent yet; "": nothing
	onItsWay string // sent, and not answered
	after    time.Time
}

// take returns the text to send with the job's end, which may reach the server before a report that is on its way.
func (p *progress) take() string {
	text := cmp.Or(p.text, p.onItsWay)
	p.text, p.onItsWay = "", ""
	return text
}

// due returns the text to send now; else when to send.
func (p *progress) due(now time.Time) (text string, when time.Time) {
	if p.text == "" || now.Before(p.after) {
		return "", p.after
	}
	p.after = now.Add(progressPause)
	p.text, p.onItsWay = "", p.text
	return p.onItsWay, time.Time{}
}
