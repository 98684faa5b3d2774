package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// folder returns the names, contents and modification times of the files in a file's folder.
func folder(t *testing.T, path string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%s %s %x\n", e.Name(), info.ModTime(), sha256.Sum256(text))
	}
	return all
}

// Opening a file that is not a file of deliveries neither changes it nor creates files next to it.
func TestAFileOfSomethingElseIsNotTouched(t *testing.T) {
	for name, setup := range map[string]string{
		"plain":    "CREATE TABLE x(y)",
		"marked":   "PRAGMA application_id = 7; CREATE TABLE x(y)",
		"with log": "PRAGMA journal_mode = wal; CREATE TABLE x(y)",
		"newer":    "PRAGMA application_id = 2003134834; PRAGMA user_version = 99; CREATE TABLE x(y)",
		"text":     "",
	} {
		t.Run(name, func(t *testing.T) {
			p := made(t)
			if setup == "" {
				if err := os.WriteFile(p, []byte(strings.Repeat("a letter to somebody ", 100)), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				db, err := sql.Open("sqlite", "file:"+strings.NewReplacer(" ", "%20", "#", "%23", "?", "%3f").Replace(p))
				if err == nil {
					_, err = db.Exec(setup)
				}
				if err = errors.Join(err, db.Close(), os.Chmod(p, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			was := folder(t, p)
			for how, try := range map[string]func() error{
				"open":    func() error { _, err := sqlite.Open(t.Context(), p, sqlite.Options{}); return err },
				"to read": func() error { _, err := sqlite.OpenToRead(t.Context(), p); return err },
				"look":    func() error { _, err := sqlite.Look(t.Context(), p); return err },
			} {
				if err := try(); err == nil || !strings.Contains(err.Error(), "not a file of deliveries") && !strings.Contains(err.Error(), "version 99") {
					t.Errorf("%s: %v", how, err)
				}
				if is := folder(t, p); is != was {
					t.Errorf("%s: the folder was\n%sand is\n%s", how, was, is)
				}
			}
		})
	}
}

// Look describes the file at a path and creates nothing.
func TestLook(t *testing.T) {
	p := made(t)
	look := func(want sqlite.Found) {
		t.Helper()
		was := folder(t, p)
		if is, err := sqlite.Look(t.Context(), p); err != nil || is != want {
			t.Errorf("%+v, %v; want %+v", is, err, want)
		}
		if is := folder(t, p); is != was {
			t.Errorf("the folder was\n%sand is\n%s", was, is)
		}
	}
	look(sqlite.Found{})
	s := open(t, p, sqlite.Options{})
	look(sqlite.Found{Held: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look(sqlite.Found{Version: sqlite.Version, Latest: true})
	if err := os.Chmod(p, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Look(t.Context(), p); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("open to others: %v", err)
	}
	if _, err := sqlite.Look(t.Context(), filepath.Join(p, "of", "none")); err == nil {
		t.Error("in a folder that is not there")
	}
	if _, err := sqlite.Look(t.Context(), filepath.Dir(p)); err == nil {
		t.Error("a folder")
	}
}

// A read-only store changes nothing and finds everything, including the contents of the log of a killed process.
func TestAFileIsLookedAt(t *testing.T) {
	p := made(t)
	s := open(t, p, sqlite.Options{})
	d := accept(t, s, post("a"))
	if _, err := sqlite.OpenToRead(t.Context(), p); !errors.Is(err, sqlite.ErrHeld) {
		t.Errorf("while it is open: %v", err)
	}
	killed := made(t)
	for _, end := range []string{"", "-wal"} {
		text, err := os.ReadFile(p + end)
		if err == nil {
			err = os.WriteFile(killed+end, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]string{"closed": p, "killed": killed} {
		was := folder(t, p)
		r, err := sqlite.OpenToRead(t.Context(), p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := r.Get(t.Context(), d.ID); err != nil || got.ID != d.ID {
			t.Errorf("%s: %v", name, err)
		}
		if all, _, err := r.List(t.Context(), delivery.Filter{}, "", 10); err != nil || len(all) != 1 {
			t.Errorf("%s: %v %v", name, all, err)
		}
		if _, err := r.Drop(t.Context(), delivery.Filter{IDs: []string{d.ID}}, 1); err == nil || !strings.Contains(err.Error(), "for reading only") {
			t.Errorf("%s: dropped: %v", name, err)
		}
		if name == "closed" {
			if _, err := sqlite.Open(t.Context(), p, sqlite.Options{}); !errors.Is(err, sqlite.ErrHeld) {
				t.Errorf("a weir while somebody looks: %v", err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if is := folder(t, p); name == "closed" && is != was {
			t.Errorf("%s: the folder was\n%sand is\n%s", name, was, is)
		}
		if _, err := open(t, p, sqlite.Options{}).Get(t.Context(), d.ID); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
	if _, err := sqlite.OpenToRead(t.Context(), made(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
