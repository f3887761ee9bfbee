"""Image files as binary images, and back: PNG, TIFF of many pages, arrays, whole folders."""

from hcnet.image_files.binarising import binarise, otsu_threshold
from hcnet.image_files.labels import read_labels
from hcnet.image_files.reading import ImageSet, files_of_images, read_images, stream_images
from hcnet.image_files.writing import images_path, write_images

__all__ = [
    "ImageSet",
    "binarise",
    "files_of_images",
    "images_path",
    "otsu_threshold",
    "read_images",
    "read_labels",
    "stream_images",
    "write_images",
]
