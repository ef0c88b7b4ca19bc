"""Files, folders, uploads, images, copies of images by URL, and stock photos."""
