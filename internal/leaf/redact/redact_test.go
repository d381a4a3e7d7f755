package redact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/redact"
)

// jwt has the form of a service account's token.
const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"

var credentials = map[string]string{
	`Get "https://admin:hunter2@host:6443/api/v1/pods?limit=500": dial tcp`:                `Get "https://xxxxx@host:6443/api/v1/pods?limit=500": dial tcp`,
	`https://host/login?id=7&access_token=hunter2&next=%2F`:                                `https://host/login?id=7&access_token=xxxxx&next=%2F`,
	`https://host/callback?code=hunter2#top`:                                               `https://host/callback?code=xxxxx#top`,
	`s3://bucket/key?X-Amz-Signature=hunter2`:                                              `s3://bucket/key?X-Amz-Signature=xxxxx`,
	"Authorization: Bearer hunter2\r\nHost: a":                                             "Authorization: xxxxx\r\nHost: a",
	`unknown header "Authorization": "Basic aHVudGVyMg=="`:                                 `unknown header "Authorization": "xxxxx"`,
	"Bearer 0123456789abcdef0123 is not valid":                                             "Bearer xxxxx is not valid",
	`{"id_token":"hunter2","user":"a"}`:                                                    `{"id_token":"xxxxx","user":"a"}`,
	`the server said "{\"clientSecret\": \"hunter2\"}"`:                                    `the server said "{\"clientSecret\": \"xxxxx\"}"`,
	`{"password":"hunter2`:                                                                 `{"password":"xxxxx`,
	"the token " + jwt + " has expired":                                                    "the token xxxxx has expired",
	`dial postgres://mirror:hunt/er?2#@db:5432/pods: refused`:                              `dial postgres://xxxxx@db:5432/pods: refused`,
	`connecting to mirror:hunter2@tcp(db:3306)/pods`:                                       `connecting to mirror:xxxxx@tcp(db:3306)/pods`,
	`cannot connect: host=db user=mirror password=hunter2 sslmode=off`:                     `cannot connect: host=db user=mirror password=xxxxx sslmode=off`,
	`exec: aws-login --client-secret=hunter2 --user a: exit status 1`:                      `exec: aws-login --client-secret=xxxxx --user a: exit status 1`,
	`exec: aws-login --password hunter2 --verbose: exit status 1`:                          `exec: aws-login --password xxxxx --verbose: exit status 1`,
	"AWS_SECRET_ACCESS_KEY=hunter2":                                                        "AWS_SECRET_ACCESS_KEY=xxxxx",
	"users:\n- name: a\n  user:\n    token: hunter2\n    client-key-data: aHVudGVyMg==\n":  "users:\n- name: a\n  user:\n    token: xxxxx\n    client-key-data: xxxxx\n",
	`yaml: "user:\n  password: hunter2\n"`:                                                 `yaml: "user:\n  password: xxxxx\n"`,
	`map[Authorization:[Bearer hunter2] Host:[a]]`:                                         `map[Authorization:[xxxxx] Host:[a]]`,
	"-----BEGIN RSA PRIVATE KEY-----\naHVudGVyMg\n-----END RSA PRIVATE KEY----- is no key": "-----BEGIN RSA PRIVATE KEY-----xxxxx-----END RSA PRIVATE KEY----- is no key",
	"-----BEGIN PRIVATE KEY-----\naHVudGVyMg":                                              "-----BEGIN PRIVATE KEY-----xxxxx",
	"illegal base64 data in LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk=":                          "illegal base64 data in xxxxx",
	"invalid password: hunter2, user a":                                                    "invalid password: xxxxx user a",
	"the proxy got X-Vault-Token: hunter2 and Accept: a":                                   "the proxy got X-Vault-Token: xxxxx and Accept: a",
	`{"auths":{"quay.io":{"auth":"hunter2"}}}`:                                             `{"auths":{"quay.io":{"auth":"xxxxx"}}}`,
	`cannot connect: Server=db;uid=mirror;pwd=hunter2;`:                                    `cannot connect: Server=db;uid=mirror;pwd=xxxxx;`,
	`exec: aws-login --password 'hunter 2' --verbose: exit status 1`:                       `exec: aws-login --password 'xxxxx' --verbose: exit status 1`,
	`the token "hunter2" has expired`:                                                      `the token "xxxxx" has expired`,
	`token \"hunter2\" is unknown`:                                                         `token \"xxxxx\" is unknown`,
	"remote: glpat-0123456789abcdefghij is no token":                                       "remote: xxxxx is no token",
	"Basic YTpi is refused, and so is basic dTpw":                                          "Basic xxxxx is refused, and so is basic xxxxx",
	"basic YWRtaW46aHVudGVyMg== is refused":                                                "basic xxxxx is refused",
	"sha256~0123456789abcdef0123 and k8s-aws-v1.aHR0cHM6Ly9zdHMu0123":                      "xxxxx and xxxxx",
}

func TestCredentialsAreMasked(t *testing.T) {
	for text, want := range credentials {
		require.Equal(t, want, redact.Text(text))
		require.Equal(t, want, redact.Text(want), "redacted twice")
	}
}

func TestOrdinaryTextIsLeftAsItIs(t *testing.T) {
	for _, text := range []string{
		"",
		`secrets is forbidden: User "system:serviceaccount:a:b" cannot list resource "secrets" in API group "" at the cluster scope`,
		"Get \"https://host/api/v1/pods?continue=eyJ2IjoibWV0YS5rOHMuaW8&limit=500\": EOF",
		"The provided continue parameter is too old; the bearer token is fine, basic authentication too",
		"mail a@b.c about http://host/a@b",
		"batch of 5 events from \"a/token\" on, attempt 3: token: expired",
		"secrets \"db-password\" not found; serviceaccounts \"a\" has no secret: create one",
		"Basic Auth, basic HTTP and basic authentication are off",
		"secrets \"db-token\" is forbidden; the secret \"db-password\" is there",
		"an invalid token \"<\", looking for the beginning of a value",
		"Get \"https://host/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dtoken&limit=5\": EOF",
	} {
		require.Equal(t, text, redact.Text(text))
	}
}

func TestShortTextKeepsToTheLimit(t *testing.T) {
	require.Equal(t, "short", redact.Short("short", 5))
	require.Equal(t, `"token":"xxxxx"`, redact.Short(`"token":"0123456789"`, 15), "short enough without its credential")
	for limit := 40; limit < 140; limit++ {
		short := redact.Short(strings.Repeat("ä", 200), limit)
		require.LessOrEqual(t, len(short), limit)
		require.True(t, utf8.ValidString(short))
		require.Contains(t, short, fmt.Sprintf("(%d bytes in all)", 400))
	}
	text := strings.Repeat("x", 90) + ` https://user:hunter2@host`
	for limit := range len(text) {
		require.NotContains(t, redact.Short(text, limit), "hun")
	}
}

// A text is searched for the forms that it has a sign of. The signs of all forms in front of it
// change nothing.
func FuzzSignsLeaveNothingOut(f *testing.F) {
	for text := range credentials {
		f.Add(text)
		f.Add(strings.ToUpper(text))
		f.Add(strings.ToLower(text))
		f.Add(strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(text))
	}
	const signs = ":// @ ( = : -- - authorization cookie bearer basic private key token passw passphrase pwd secret code=\n" +
		"sig= key= auth= \"auth\" eyj ls0tls1crudjti sha256~ k8s-aws-v1. ya29. ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- hvs. .\n"
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, redact.Text(signs)+redact.Text("\n"+text), redact.Text(signs+"\n"+text))
	})
}

func BenchmarkOrdinaryText(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		redact.Text(`Get "https://10.20.30.40:6443/api/v1/pods?allowWatchBookmarks=true&resourceVersion=5000000000&timeoutSeconds=1234&watch=true": dial tcp 10.20.30.40:6443: connect: connection refused`)
	}
}
