package paths

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestWidestReading(t *testing.T) {
	for raw, want := range map[string]string{
		"/": "/", "/v1/chat/completions": "/v1/chat/completions", "/a.b/c..d": "/a.b/c..d", "": "/", "*": "/*",
		"/v1/chat/%63ompletions": "/v1/chat/completions", "/v1/chat/%2563ompletions": "/v1/chat/completions",
		"/v1/chat/completions/": "/v1/chat/completions", "//v1///chat//completions": "/v1/chat/completions",
		"/v1/chat/completions;x=1": "/v1/chat/completions", "/v1;a/chat;b=c/completions;": "/v1/chat/completions",
		"/v1%2Fchat%2fcompletions": "/v1/chat/completions", `\v1\chat/completions`: "/v1/chat/completions", "/v1%5cchat/completions": "/v1/chat/completions",
		"/v1/./chat/x/../completions": "/v1/chat/completions", "/v1/%2e%2E/v1/chat/%2e/completions": "/v1/chat/completions",
		"/v1/chat/completions%20": "/v1/chat/completions", "/v1/chat/completions%00": "/v1/chat/completions", "/v1/chat/completions%3Fa": "/v1/chat/completions",
		"/v1/chat/completions#a": "/v1/chat/completions", "/../../a": "/a", "/a/..;/b": "/b", "/%zz": "/%zz", "/%": "/%", "/%e4%b8%ad": "/中",
	} {
		if got := Widest(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestSamePath(t *testing.T) {
	for raw, want := range map[string]string{
		"/a": "/a", "/%61%2f%7E": "/a%2F~", "/%2e%2E": "/..", "/%zz%6": "/%zz%6", "/%C3%bc": "/%C3%BC", "//a/": "//a/", "/%2541": "/%2541",
	} {
		if got := canonical(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestClimbing(t *testing.T) {
	for _, raw := range []string{"/..", "/../a", "/a/../..", "/%2e%2e/a", "/a/.%2e/%2E./b", "/..;/a", "/a%2f..%2f..%2fb", `/..\a`, "/%252e%252e/a", "/a//../..", "/a/./../..", "/.. /a", "/..%00/a"} {
		if !Climbs(raw) || !Dotted(raw) {
			t.Errorf("%q: nobody sees that it climbs", raw)
		}
	}
	for _, raw := range []string{"/", "/a/..", "/a/../b", "/...", "/a..b/..c", "/a/.b", "/.well-known/x", "/a/b/../../c", "/%41"} {
		if Climbs(raw) {
			t.Errorf("%q is said to climb", raw)
		}
	}
	for raw, want := range map[string]bool{"/a/./b": true, "/a/%2e": true, "/a.b": false, "/.a": false, "/a/b": false, "/a/...": false} {
		if Dotted(raw) != want {
			t.Errorf("%q: dotted is %v", raw, !want)
		}
	}
}

func TestPathBeginsInEveryReading(t *testing.T) {
	for _, c := range []struct {
		prefix, raw    string
		plain, anyCase bool
	}{
		{"/admin/", "/admin/x", true, true}, {"/admin/", "/admin/", true, true}, {"/admin/", "/admin", true, true}, {"/admin/", "//admin/", true, true},
		{"/admin/", "/admin//", true, true}, {"/admin/", "/admin%2F", true, true}, {"/admin/", "/admin;a=b/", true, true}, {"/admin/", `\admin\`, true, true},
		{"/admin/", "/x/../%61dmin/", true, true}, {"/admin/", "/ADMIN", false, true}, {"/admin/", "//ADM%49N%2f", false, true},
		{"/café/", "/caf%C3%A9/", true, true}, {"/café/", "/caf%C3%A9", true, true}, {"/café/", "/CAF%C3%89/", false, true}, {"/straße/", "/STRA%E1%BA%9EE/", false, true},
		{"/admin/", "/administrator", false, false}, {"/admin/", "/", false, false}, {"/admin", "/administrator", true, true}, {"/", "/a", true, true},
		{"/a/b/", "/a", false, false}, {"/a/b/", "/a/b%2f", true, true},
	} {
		p := Read(c.raw)
		if got := p.Begins(c.prefix, false); got != c.plain {
			t.Errorf("%q begins with %q: %v, want %v", c.raw, c.prefix, got, c.plain)
		}
		if got := p.Begins(c.prefix, true); got != c.anyCase {
			t.Errorf("%q begins with %q in any case: %v, want %v", c.raw, c.prefix, got, c.anyCase)
		}
	}
}

func TestRest(t *testing.T) {
	for _, c := range []struct {
		prefix, raw, rest string
		ok                bool
	}{
		{"/s3/", "/s3", "/", true}, {"/s3/", "/s3/", "/", true}, {"/s3/", "/s3//a", "//a", true}, {"/s3/", "/s3/a%2Fb", "/a%2Fb", true},
		{"/s3/", "/%733/a", "/a", true}, {"/s3", "/s3x", "", false}, {"/s3/", "/S3/a", "", false}, {"/s3/", "//s3/a", "", false},
		{"/a/b/", "/a/b/c", "/c", true}, {"/a/b/", "/a", "", false}, {"/a/b/", "/a/%62", "/", true}, {"", "//a", "//a", true}, {"/", "/a", "/a", true},
		{"/a%2fb/", "/a%2Fb/c", "/c", true}, {"/a%2fb/", "/a/b/c", "", false}, {"/s3/", "*", "", false},
	} {
		if rest, ok := Rest(c.prefix, c.raw); rest != c.rest || ok != c.ok {
			t.Errorf("%q of %q: got %q, %v, want %q, %v", c.prefix, c.raw, rest, ok, c.rest, c.ok)
		}
	}
}

// The widest interpretation of a path is plain, and is its own widest interpretation. A path that does not climb stays below
// its root after path.Clean as well, before and after decoding.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e%2e/%2e", "/a;x/..;/b", `\..\`, "/%25%32%65", "/a%2f..%2f..", "", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		w := Widest(raw)
		if !strings.HasPrefix(w, "/") || len(w) > 1 && strings.HasSuffix(w, "/") || strings.Contains(w, "//") || strings.Contains(w+"/", "/../") || strings.Contains(w+"/", "/./") {
			t.Errorf("%q: the widest reading is %q", raw, w)
		}
		if _, err := url.PathUnescape(raw); err == nil && canonical(canonical(raw)) != canonical(raw) { // no server accepts other paths
			t.Errorf("%q: %q is written again as %q", raw, canonical(raw), canonical(canonical(raw)))
		}
		if Climbs(raw) || !strings.HasPrefix(raw, "/") {
			return
		}
		for _, read := range []string{raw, canonical(raw), decoded(raw)} {
			if c := path.Clean("root/in" + read); c != "root/in" && !strings.HasPrefix(c, "root/in/") {
				t.Errorf("%q does not climb, and leads to %q", raw, c)
			}
		}
	})
}

func decoded(raw string) string {
	if s, err := url.PathUnescape(raw); err == nil {
		return s
	}
	return raw
}
