//go:build !linux && !darwin

package memberfile

import "os"

const noFollow = 0

func lock(*os.File) error     { return ErrUnsupported }
func checkOwner(string) error { return ErrUnsupported }
func checkLocal(string) error { return ErrUnsupported }
