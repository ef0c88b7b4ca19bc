(() => {
  // <script src="https://…/book.js" data-workspace="slug" data-service="id" async></script>
  const tag = document.currentScript;
  if (!tag || !tag.dataset.workspace) return;
  const { workspace, service, title } = tag.dataset;
  const base = new URL(".", tag.src);
  const path = ["book", workspace, service].filter(Boolean).map(encodeURIComponent).join("/");
  const frame = document.createElement("iframe");
  frame.src = new URL(path, base);
  frame.title = title || "Online booking";
  frame.loading = "lazy";
  frame.referrerPolicy = "no-referrer";
  frame.style.cssText = "display:block;width:100%;height:640px;border:0;color-scheme:normal";
  tag.after(frame);
  let pages = 0;
  frame.addEventListener("load", () => {
    // A step may be shorter than the one before it: its beginning must be in view.
    pages += 1;
    if (pages > 1 && frame.getBoundingClientRect().top < 0) frame.scrollIntoView();
  });
  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow) return;
    const height = event.data && event.data.bookingPageHeight;
    if (Number.isFinite(height)) frame.style.height = `${Math.min(Math.max(height, 240), 6000)}px`;
  });
})();
