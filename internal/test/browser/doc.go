// Package browser drives weir's status page, as weir serve ships it, in a real Chromium. It is a module of its own, so
// that programs which use weir do not download what drives browsers.
package browser
