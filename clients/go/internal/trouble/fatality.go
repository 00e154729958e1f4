package trouble

// fatality is an error that waiting does not fix: what the server says, and what to do.
type fatality struct {
	said    string
	isFirst bool // whether the error begins with it
	what    string
}
