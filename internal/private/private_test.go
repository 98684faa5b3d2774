//go:build unix

package private

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesThatOthersMayRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := Check(path); err != nil {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o660: true, 0o644: false, 0o604: false, 0o602: false, 0o777: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		err := Check(path)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "chmod 600 '"+path+"'") {
			t.Errorf("%04o: %v", mode, err)
		}
	}
}
