// Package release makes the Helm release of each module follow its chart and values: it
// installs, upgrades and uninstalls in this process.
//
// The way of one [Manager.Reconcile]:
//
//  1. one metadata-only list of the release's Secrets says what is there, or one of
//     many releases when many are asked for at once;
//  2. decide, a pure function, names the next step;
//  3. unchanged inputs end it there, without a render;
//  4. otherwise the chart is rendered; an unchanged manifest ends it with new
//     digests in the record of the release and no new revision;
//  5. otherwise a life (life.go) makes a revision: its record, pending, then the chart's
//     hooks, its objects by server-side apply, and the record, deployed;
//  6. the objects that the release holds no more are deleted.
//
// Releases are ordinary Helm releases: `helm list` shows them, `helm rollback` works on them. Two digests and the
// owner stand on them as labels. Helm's library loads and renders charts, and keeps the records; it writes no object.
//
// A Manager acts only while its process holds the Lease of the instance: it takes over releases that are pending,
// because nobody else can be working on them. Actions on different releases run side by side; the caller (the lane of
// the module) sees to it that one release has one action at a time.
//
// Helm and its template engine warn through the standard library's log package, and may print values: cmd discards
// that.
package release
