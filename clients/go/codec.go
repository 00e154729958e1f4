package dq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

const (
	envelopeVersion = 1
	keptBytes       = 1 << 16 // the capacity up to which a writer is reused; a larger one is freed
)

// Codec encodes what [Queue.Add] is given, and decodes it for [Job.Decode].
type Codec interface {
	Encode(data any) ([]byte, error)
	Decode(payload []byte, v any) error
}

// JSON is the default codec. It sends a []byte as it is.
var JSON Codec = jsonCodec{}

// Bytes is a codec for []byte and string, which it does not change.
var Bytes Codec = bytesCodec{}

type jsonCodec struct{}

func (jsonCodec) Encode(data any) ([]byte, error) {
	if raw, ok := data.([]byte); ok {
		return raw, nil
	}
	return compact(data)
}

func (jsonCodec) Decode(payload []byte, v any) error {
	if raw, ok := v.(*[]byte); ok {
		*raw = payload
		return nil
	}
	return json.Unmarshal(payload, v)
}

// writer is a JSON encoder that is reused: else each added job would make one.
type writer struct {
	out     bytes.Buffer
	encoder *json.Encoder
}

var writers = sync.Pool{New: func() any {
	made := &writer{}
	made.encoder = json.NewEncoder(&made.out)
	made.encoder.SetEscapeHTML(false)
	return made
}}

func compact(data any) ([]byte, error) {
	to := writers.Get().(*writer)
	to.out.Reset()
	if err := to.encoder.Encode(data); err != nil { // an encoder that has failed fails again, so it is not reused
		return nil, fmt.Errorf("dq: data that JSON cannot hold: %w", err)
	}
	written := bytes.Clone(bytes.TrimSuffix(to.out.Bytes(), []byte("\n")))
	if to.out.Cap() <= keptBytes {
		writers.Put(to)
	}
	return written, nil
}

type bytesCodec struct{}

func (bytesCodec) Encode(data any) ([]byte, error) {
	switch data := data.(type) {
	case []byte:
		return data, nil
	case string:
		return []byte(data), nil
	}
	return nil, fmt.Errorf("dq: %T is neither []byte nor string", data)
}

func (bytesCodec) Decode(payload []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = payload
	case *string:
		*v = string(payload)
	default:
		return fmt.Errorf("dq: %T is neither *[]byte nor *string", v)
	}
	return nil
}

// envelope is a payload with a kind and headers: {"dq":1,"kind":...,"data":...,"headers":{...}}.
type envelope struct {
	version int64
	kind    string
	data    json.RawMessage
	headers map[string]string
}

func writeEnvelope(data any, kind string, headers map[string]string) ([]byte, error) {
	if _, isRaw := data.([]byte); isRaw {
		return nil, errors.New("dq: data of a job with a kind or headers must be what JSON can hold, not []byte")
	}
	return compact(written{envelopeVersion, kind, data, headers})
}

// written is an envelope as it is sent.
type written struct {
	Version int               `json:"dq"`
	Kind    string            `json:"kind,omitempty"`
	Data    any               `json:"data"`
	Headers map[string]string `json:"headers,omitempty"`
}

// readEnvelope returns nil if the payload is no envelope. Names of fields must match in upper and lower case.
func readEnvelope(payload []byte) *envelope {
	if !bytes.HasPrefix(payload, []byte("{")) || !bytes.Contains(payload, []byte(`"dq"`)) {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return nil
	}
	found := envelope{data: fields["data"]}
	_, hasKind := fields["kind"]
	_, hasHeaders := fields["headers"]
	if json.Unmarshal(fields["dq"], &found.version) != nil || found.data == nil || !hasKind && !hasHeaders {
		return nil
	}
	_ = json.Unmarshal(fields["kind"], &found.kind) // a kind that is not a string is ignored
	var headers map[string]any
	_ = json.Unmarshal(fields["headers"], &headers)
	found.headers = make(map[string]string, len(headers))
	for name, value := range headers {
		if text, ok := value.(string); ok {
			found.headers[name] = text
		}
	}
	return &found
}
