package checkpoint

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// letterText is a dead letter as a record has it in place of a resource version. A library ignores
// the fields that it does not know.
type letterText struct {
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	Newest          string        `json:"newest,omitempty"` // if it is another one
	Type            api.EventType `json:"type"`
	FirstError      string        `json:"firstError"`
	LastError       string        `json:"lastError,omitempty"` // if it is another one
	Attempts        int           `json:"attempts"`
	Since           time.Time     `json:"since"`
}

// AddDeadLetter adds a record of a dead letter.
func (j *Journal) AddDeadLetter(letter api.DeadLetter) {
	text := letterText{
		ResourceVersion: letter.ResourceVersion, Newest: letter.Newest, Type: letter.Type, FirstError: letter.FirstError,
		LastError: letter.LastError, Attempts: letter.Attempts, Since: letter.Since,
	}
	if text.Newest == text.ResourceVersion {
		text.Newest = ""
	}
	if text.LastError == text.FirstError {
		text.LastError = ""
	}
	b, _ := json.Marshal(text) // strings, a number and a time that time.Now has made
	version := keytable.Binary{Text: string(b)}
	version.SetUID(string(letter.UID))
	j.Add(Begun, letter.Key, &version)
}

// DeadLetter returns what a record of a dead letter says, whose key and version NextRecord has
// returned. It is the caller's.
func (r *Reader) DeadLetter(key string, version *keytable.Binary) (letter api.DeadLetter, err error) {
	v := version.Version()
	var text letterText
	if err := json.Unmarshal([]byte(v.ResourceVersion), &text); err != nil {
		return letter, r.damaged(r.blockAt+int64(r.at), "malformed dead letter")
	}
	letter = api.DeadLetter{
		Key: strings.Clone(key), UID: types.UID(strings.Clone(string(v.UID))), ResourceVersion: text.ResourceVersion, Newest: text.Newest, Type: text.Type,
		FirstError: text.FirstError, LastError: text.LastError, Attempts: text.Attempts, Since: text.Since,
	}
	if letter.Newest == "" {
		letter.Newest = letter.ResourceVersion
	}
	if letter.LastError == "" {
		letter.LastError = letter.FirstError
	}
	return letter, nil
}
