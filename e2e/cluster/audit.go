package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// auditPolicy logs lists and watches of pods and configmaps when their answers begin.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [list, watch]
  resources:
  - group: ""
    resources: [pods, configmaps]
- level: None
`

// Audited is a list or a watch of pods or configmaps, as the API server has logged it.
type Audited struct {
	Received  time.Time
	Namespace string
	Resource  string
	Verb      string
	URI       string
	// Credential is what the client has proven itself with: "JTI=" and the ID of a token, or
	// "X509SHA256=" and the hash of a certificate. It is empty for the administrator's token.
	Credential string
}

// TokenCredential is the Credential of a client with the token of a service account.
func TokenCredential(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("token has %d parts, not 3", len(parts))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ JTI string }
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		return "", fmt.Errorf("claims of the token: %w", err)
	}
	return "JTI=" + claims.JTI, nil
}

// auditFlags are the flags of an API server with Options.Audit.
func (c *Cluster) auditFlags() ([]string, error) {
	if !c.options.Audit {
		return nil, nil
	}
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditPath(), "--audit-log-mode=blocking"}, nil
}

func (c *Cluster) auditPath() string { return filepath.Join(c.dir, "audit.log") }

// Audited returns the lists and watches of a namespace's pods and configmaps that have begun so
// far, or with no namespace those of all namespaces at once. It is for clusters with Options.Audit.
func (c *Cluster) Audited(namespace string) (all []Audited, err error) {
	text, err := os.ReadFile(c.auditPath())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be under way
	const credentialID = "authentication.kubernetes.io/credential-id"
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var event struct {
			Stage, Verb, RequestURI  string
			RequestReceivedTimestamp time.Time
			ObjectRef                struct{ Namespace, Resource string }
			User                     struct{ Extra map[string][]string }
		}
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		// A watch is logged when it begins, and again when it ends.
		if event.ObjectRef.Namespace != namespace || event.Verb == "watch" && event.Stage != "ResponseStarted" {
			continue
		}
		a := Audited{Received: event.RequestReceivedTimestamp, Namespace: namespace, Resource: event.ObjectRef.Resource, Verb: event.Verb, URI: event.RequestURI}
		if ids := event.User.Extra[credentialID]; len(ids) > 0 {
			a.Credential = ids[0]
		}
		all = append(all, a)
	}
}
