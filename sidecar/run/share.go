package run

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/machinestore"
)

// sharedFormat is part of the directory's name. Programs with different formats share no state.
const sharedFormat = "1"

// sharedDir creates the directory of the state that runs with the same configuration share. Runs without a
// configuration use one directory.
func sharedDir(base, config string) (string, error) {
	name := "presets"
	if config != "" {
		path, err := filepath.Abs(config)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256([]byte(path))
		name = hex.EncodeToString(sum[:8])
	}
	dir := filepath.Join(base, "shared-"+sharedFormat+"-"+name)
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, checkPrivate(dir)
}

// share opens the store that the user's runs share. Without it, this run counts its limits alone.
func (r *running) share() fleet.Store {
	s, err := machinestore.Open(r.shared)
	if err != nil {
		r.say("limits are not shared with other runs: %v", err)
		return nil
	}
	return s
}
