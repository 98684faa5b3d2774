// The functions of pick.go that have no body are the runtime's.
