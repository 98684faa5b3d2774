package proxy

import (
	"net/http"
	"regexp"
	"strings"
)

// pathForms are paths that contain a credential, which is the group of the pattern: a secret with the ID of what it is for.
var pathForms = [...]struct {
	begin string
	form  *regexp.Regexp
}{
	{"/bot", regexp.MustCompile(`^/bot([^/]*(?::|%3A)[^/]+)`)}, // Telegram
	{"/file/bot", regexp.MustCompile(`^/file/bot([^/]*(?::|%3A)[^/]+)`)},
	{"/services/", regexp.MustCompile(`^/services/([TE][^/]*/B[^/]*/[^/]+)`)}, // Slack
	{"/triggers/", regexp.MustCompile(`^/triggers/([TE][^/]*/[^/]+/[^/]+)`)},
	{"/workflows/", regexp.MustCompile(`^/workflows/([TE][^/]*/[^/]+/[^/]+/[^/]+)`)},
	{"/api/", regexp.MustCompile(`^/api/(?:v\d+/)?webhooks/(\d+/)aW50ZXJhY3Rpb2`)}, // Discord: the token of one interaction
	{"/api/", regexp.MustCompile(`^/api/(?:v\d+/)?webhooks/(\d+/[^/]+)`)},
	{"/webhook", regexp.MustCompile(`^/webhook(?:b2)?/([^/]+/IncomingWebhook/.+)`)},                  // Teams
	{"/hooks/", regexp.MustCompile(`^/hooks/((?:catch/\d+/[^/]+|[^/]+/[^/]{20,}|[a-z0-9]{26}))/?$`)}, // Zapier, Rocket.Chat, Mattermost
	{"/trigger/", regexp.MustCompile(`^/trigger/[^/]+/(?:json/)?with/key/([^/]+)`)},                  // IFTTT
	{"/integration/", regexp.MustCompile(`^/integration/([^/]+)/enqueue`)},                           // PagerDuty
	{"/v", regexp.MustCompile(`^/v[23]/([\w-]{32})/?$`)},                                             // Infura, Alchemy
}

// credentialInPath returns the credential in a path, for webhooks, bots and nodes of blockchains.
func credentialInPath(method, path string) string {
	for _, f := range pathForms {
		if !strings.HasPrefix(path, f.begin) || f.begin == "/v" && method != http.MethodPost {
			continue
		}
		if m := f.form.FindStringSubmatch(path); m != nil {
			return m[1]
		}
	}
	return ""
}
