// Package apply writes single objects by server-side apply, and tells from metadata.managedFields whether an object is
// as it was applied. Releases write through it; sets, children and fields of controllers compare by it.
package apply
